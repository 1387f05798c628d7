"""Share graphics cards among more jobs than cards: each job gets a card to itself, and `permit.slot` says which.

    python examples/gpus.py

Every permit of a semaphore has a slot, 0 to k-1, which no other holder has at the same time. So a slot can stand for
one of k things: cards, ports, licences, working directories.
"""

import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from fairgate import sync

CARDS = 2
JOBS = 5


def job(number: str, folder: Path) -> None:
    with sync.join() as peer, peer.semaphore("gpu", k=CARDS) as permit:
        os.environ["CUDA_VISIBLE_DEVICES"] = str(permit.slot)  # before anything that uses a card is imported
        train(folder)
        print(f"job {number} was on card {permit.slot}\n", end="", flush=True)  # one write, so lines do not mix


def train(folder: Path) -> None:
    """A stand-in that checks that its card is free: mode "x" fails if the file already exists."""
    busy = folder / f"card{os.environ['CUDA_VISIBLE_DEVICES']}"
    with busy.open("x"):
        time.sleep(0.05)
    busy.unlink()


def main(folder: Path) -> int:
    jobs = [subprocess.Popen([sys.executable, __file__, str(folder), str(number)]) for number in range(JOBS)]
    return sum([job.wait() != 0 for job in jobs])


if __name__ == "__main__":
    if len(sys.argv) > 2:
        job(sys.argv[2], Path(sys.argv[1]))
    else:
        with TemporaryDirectory() as made:
            sys.exit(main(Path(made)))
