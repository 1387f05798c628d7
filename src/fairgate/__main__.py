"""python -m fairgate"""

from fairgate.cli import main

main()
