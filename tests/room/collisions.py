"""A process that enters a gate of one again and again, and looks whether another one is inside.

`python -m tests.room.collisions FOLDER SECONDS` prints how often it entered, and how often it met another one.
"""

from __future__ import annotations

import mmap
import os
import random
import sys
import time

from fairgate.room.room import Room

WORD = 8


def main() -> None:
    folder, seconds = sys.argv[1], float(sys.argv[2])
    fd = os.open(f"{folder}/inside", os.O_RDWR | os.O_CREAT)
    os.ftruncate(fd, WORD)
    inside = memoryview(mmap.mmap(fd, WORD)).cast("q")
    rng = random.Random(os.getpid())
    entries = met = 0
    end = time.monotonic() + seconds
    with Room(folder, "g", 1) as room:
        while time.monotonic() < end:
            for _ in range(rng.choice((1, 3, 10, 100))):
                permit = room.acquire()
                assert permit is not None
                met += inside[0] != 0
                inside[0] = os.getpid()
                met += inside[0] != os.getpid()
                inside[0] = 0
                permit.release()
                entries += 1
            for _ in range(rng.choice((0, 10, 100))):  # outside, without giving up the processor
                pass
            if rng.random() < 0.01:
                time.sleep(rng.random() * 1e-3)
    print(entries, met)


if __name__ == "__main__":
    main()
