"""Two hosts of one cluster with busy guests, some of which are always stopped for a moment: does anybody hang?

A guest that is stopped when its turn comes is passed over, and its peer swaps what it has asked for. The judge reads
what the guests wrote down, and looks at the logs of the peers: no callback of theirs may have raised.

`python -m tests.live.stopped_guests --help` runs it from the command line.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path

from fairgate.net.secret import VARIABLE
from fairgate.room.clusters import CLUSTERS, described
from fairgate.torture.guest import GuestPlan
from fairgate.torture.history import ENTERS, violations
from fairgate.torture.host import CLUSTER, GATE, Host
from fairgate.torture.run import read
from tests.live.commands import SOON, until
from tests.live.peers import SECRET
from tests.live.test_loaded_hosts import Ports
from tests.room.versions import version

HOSTS = 2
SHORTEST, LONGEST = 0.02, 0.12  # seconds of a stop
HANG_SECONDS = 10.0  # without any entry of a host
TRACEBACK = "Traceback (most recent call last)"
STAY, REST = 0.002, 0.002  # seconds


@dataclass
class Outcome:
    entries: int = 0
    stops: int = 0
    longest_gap: float = 0.0  # seconds without an entry at one of the hosts
    hangs: int = 0  # guests that entered no more once nobody was stopped
    raised: int = 0  # tracebacks in the logs of the peers
    violations: list[str] = field(default_factory=list)

    def complaints(self) -> list[str]:
        found = {
            "a host stood still": self.longest_gap > HANG_SECONDS,
            "guests hang": self.hangs > 0,
            "a callback of a peer raised": self.raised > 0,
        }
        return [*self.violations, *[name for name, wrong in found.items() if wrong]]


class Stress:
    def __init__(self, folder: Path, guests: int, k: int, seed: int) -> None:
        self.k = k
        self.random = random.Random(seed)
        self.stopped: dict[int, float] = {}  # until when, by process
        self.stops = 0
        self.results = folder / "results"
        self.results.touch()
        self.read_to = 0
        self.tail = ""
        self.latest: dict[str, float] = {}  # by guest: when its latest entry was seen
        network = Ports()
        join = ["--join", network.address(0)]
        self.hosts = [
            Host(number, network, folder / str(number), None, join if number else ["--create"])
            for number in range(HOSTS)
        ]
        for host in self.hosts:
            host.start_peer()
            until(partial(described, f"{host.folder}/gates/{CLUSTERS}/{CLUSTER}"))
        plan = GuestPlan("", "", GATE, k, str(self.results), seed, CLUSTER, stay=STAY, rest=REST, impatient=0.1)
        for host in self.hosts * guests:
            host.start_guest(plan)
        self.until_all_enter()

    def names(self) -> list[str]:
        return [guest.name for host in self.hosts for guest in host.guests]

    def look(self) -> None:
        """Note which guests have entered since the last look."""
        with self.results.open() as file:
            file.seek(self.read_to)
            lines = (self.tail + file.read()).split("\n")
            self.read_to = file.tell()
        self.tail = lines.pop()
        now = time.monotonic()
        for words in map(str.split, lines):
            if words[1:2] == [ENTERS]:
                self.latest[words[0]] = now

    def until_all_enter(self) -> int:
        """Returns the number of guests that do not, from now on."""
        began = time.monotonic()
        while time.monotonic() < began + SOON:
            self.look()
            missing = [name for name in self.names() if self.latest.get(name, 0.0) <= began]
            if not missing:
                return 0
            time.sleep(0.02)
        return len(missing)

    def stands_still(self) -> bool:
        """Whether a host has had no entry for too long."""
        latest = [max(self.latest[guest.name] for guest in host.guests) for host in self.hosts]
        return time.monotonic() - min(latest) > HANG_SECONDS

    def run(self, seconds: float) -> Outcome:
        end = time.monotonic() + seconds
        looked = 0.0
        while (now := time.monotonic()) < end:
            if now - looked > 1.0:
                looked = now
                self.look()
                if self.stands_still():
                    break
            self.step()
            time.sleep(self.random.uniform(0, 0.02))
        for pid in list(self.stopped):
            self.resume(pid)
        hangs = self.until_all_enter()
        for host in self.hosts:
            host.end()
        return self.judge(hangs)

    def step(self) -> None:
        for pid in [pid for pid, due in self.stopped.items() if due < time.monotonic()]:
            self.resume(pid)
        running = [guest.process.pid for host in self.hosts for guest in host.guests]
        pid = self.random.choice(running)
        if pid not in self.stopped and len(self.stopped) < len(running) // 2:
            os.kill(pid, signal.SIGSTOP)
            self.stopped[pid] = time.monotonic() + self.random.uniform(SHORTEST, LONGEST)
            self.stops += 1

    def resume(self, pid: int) -> None:
        del self.stopped[pid]
        os.kill(pid, signal.SIGCONT)

    def judge(self, hangs: int) -> Outcome:
        history = read(self.results, [])
        outcome = Outcome(len(history.entries()), self.stops, hangs=hangs, violations=violations(history, self.k))
        for host in self.hosts:
            mine = [visit.entered for visit in history.entries() if visit.guest.startswith(f"host{host.number}-")]
            outcome.longest_gap = max([outcome.longest_gap, *[(b - a) / 1e9 for a, b in pairwise(mine)]])
            outcome.raised += (host.folder / f"host{host.number}.log").read_text().count(TRACEBACK)
        return outcome

    def end(self) -> None:
        for pid in self.stopped:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        for host in self.hosts:
            host.end()


def stress(folder: Path, seconds: float, guests: int, k: int, seed: int) -> Outcome:
    """With as many guests on each host. The variable that names a secret must be set."""
    found = Stress(folder, guests, k, seed)
    try:
        return found.run(seconds)
    finally:
        found.end()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.live.stopped_guests", description="Stop busy guests.")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--guests", type=int, default=5, help="of each host")
    parser.add_argument("-k", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="fairgate") as folder:
        secret = Path(folder, "secret")
        secret.touch(0o600)
        secret.write_bytes(SECRET.key)
        os.environ[VARIABLE] = str(secret)
        outcome = stress(Path(folder), **vars(given))
    print(f"{version()}, k={given.k}: {outcome}", *outcome.complaints(), sep="\n")
    return bool(outcome.complaints())


if __name__ == "__main__":
    sys.exit(main())
