"""`python -m tests.live.joiners FOLDER COUNT`: starts processes that all join at once and stay until stdin is closed.

Each prints its id when it has joined. They are forked from one process that has already imported everything, so that
they really race.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from fairgate.net.access import access
from fairgate.net.members import join


def joiner(folder: Path, gun: int) -> None:
    os.read(gun, 1)  # blocks until all copies of the other end are closed
    joined = join(access(folder))
    os.write(1, f"{joined.me.id} {joined.me.pid}\n".encode())
    sys.stdin.read()
    os._exit(0)


def main(folder: Path, count: int) -> None:
    gun, trigger = os.pipe()
    for _ in range(count):
        if os.fork() == 0:
            os.close(trigger)
            joiner(folder, gun)
    os.close(trigger)
    for _ in range(count):
        os.wait()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
