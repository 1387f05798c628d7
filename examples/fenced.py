"""A write that only the holder of the lock can do, even if somebody believes to be the holder and no longer is.

    python examples/fenced.py

A permit with a lease ends when the lease does, whatever its holder is doing: it may hang, or be stopped, or its host
may be asleep. When it goes on, it may write before it looks at its permit. No lock can prevent that. A *fence* can: it
is a number that rises with every permit; what is protected keeps the highest that it has seen, and refuses lower ones.
(With k > 1 fences rise in each slot for itself: keep one for each slot.)
"""

import sqlite3
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from fairgate import sync

LEASE = 1.0  # seconds


def write(file: str, text: str, fence: int | None) -> bool:
    """False: refused, because a later holder has written. It is one statement, so that nobody comes between."""
    database = sqlite3.connect(file)
    try:
        with database:
            change = "update report set text = ?, fence = ? where fence <= ?"
            return database.execute(change, (text, fence, fence)).rowcount == 1
    finally:
        database.close()


def slow(file: str) -> None:
    """It has a lease, and is away for longer than that."""
    with sync.join() as peer:
        permit = peer.lock("report").acquire(lease=LEASE)
        print("slow is inside", flush=True)
        sys.stdin.readline()  # away
        assert permit is not None
        if write(file, "slow was here", permit.fence):
            sys.exit("a stale holder has written")
        print(f"slow was refused: {'its permit is over' if permit.lost else 'and yet it is inside'}")


def quick(file: str) -> None:
    """It waits until the lock is free, which is when the lease of the other is over."""
    with sync.join() as peer, peer.lock("report") as permit:
        if not write(file, "quick was here", permit.fence):
            sys.exit("the holder was refused")
        print("quick has written", flush=True)


def main(file: str) -> int:
    database = sqlite3.connect(file)
    with database:
        database.execute("create table report (text, fence integer)")
        database.execute("insert into report values ('nobody was here', 0)")
    first = start("slow", file)
    assert first.stdout is not None
    print(first.stdout.readline(), end="")  # from now on it has the lock
    second = start("quick", file)
    print(second.communicate()[0], end="")
    print(first.communicate("come back\n")[0], end="")
    print("the report says:", *database.execute("select text from report").fetchone())
    database.close()
    return first.returncode or second.returncode


def start(who: str, file: str) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, __file__, who, file], stdin=pipe, stdout=pipe, text=True)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        {"slow": slow, "quick": quick}[sys.argv[1]](sys.argv[2])
    else:
        with TemporaryDirectory() as folder:
            sys.exit(main(str(Path(folder) / "report.db")))
