"""More jobs than graphics cards: each job gets a card to itself, and `permit.slot` says which.

    python examples/gpus.py

A permit of a gate of k has a slot, 0 to k-1, and nobody else has that slot meanwhile. So a slot can stand for whatever
there are k of: cards, ports, licences, folders to work in.
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
        print(f"job {number} was on card {permit.slot}\n", end="", flush=True)  # one write: lines of several do not mix


def train(folder: Path) -> None:
    """A stand-in that minds whether its card is free: mode "x" fails if the file is there already."""
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
