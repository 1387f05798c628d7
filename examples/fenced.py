"""Protect a resource from a process that still believes it holds the lock after its lease has expired.

    python examples/fenced.py

A permit with a lease ends when the lease expires, whatever its holder is doing: it may hang or be stopped, or its host
may be suspended. When it continues, it may write before it checks its permit. No lock can prevent that. A *fence* can:
it is a number that rises with every permit. The resource remembers the highest fence it has seen and rejects lower
ones. (With k > 1 fences rise separately in each slot, so remember one per slot.)
"""

import sqlite3
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from fairgate import sync

LEASE = 1.0  # seconds


def write(file: str, text: str, fence: int | None) -> bool:
    """False if rejected because a later holder has written. A single statement, so that it is atomic."""
    database = sqlite3.connect(file)
    try:
        with database:
            change = "update report set text = ?, fence = ? where fence <= ?"
            return database.execute(change, (text, fence, fence)).rowcount == 1
    finally:
        database.close()


def slow(file: str) -> None:
    """Holds a lease, and is away for longer than that."""
    with sync.join() as peer:
        permit = peer.lock("report").acquire(lease=LEASE)
        print("slow is inside", flush=True)
        sys.stdin.readline()  # is away
        assert permit is not None
        if write(file, "slow was here", permit.fence):
            sys.exit("a stale holder has written")
        print(f"slow was rejected: {'its permit was lost' if permit.lost else 'although its permit is valid'}")


def quick(file: str) -> None:
    """Waits until the lock is free, which is when the other's lease expires."""
    with sync.join() as peer, peer.lock("report") as permit:
        if not write(file, "quick was here", permit.fence):
            sys.exit("the holder was rejected")
        print("quick has written", flush=True)


def main(file: str) -> int:
    database = sqlite3.connect(file)
    with database:
        database.execute("create table report (text, fence integer)")
        database.execute("insert into report values ('nobody was here', 0)")
    first = start("slow", file)
    assert first.stdout is not None
    print(first.stdout.readline(), end="")  # now it holds the lock
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
