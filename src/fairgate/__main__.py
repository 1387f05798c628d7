"""`python -m fairgate`: the same as the command `fairgate`."""

from fairgate.cli import main

main()
