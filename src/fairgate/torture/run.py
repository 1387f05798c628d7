"""Runs a torture: makes the hosts, lets them work under faults, then in peace, and judges what the guests saw."""

import os
import random
import shutil
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from fairgate.errors import BadInput
from fairgate.torture.faults import Faults
from fairgate.torture.guest import GuestPlan, now
from fairgate.torture.history import END, SECOND, History
from fairgate.torture.host import CLUSTER, GATE, Host
from fairgate.torture.judgement import Calm, Judge, Verdict
from fairgate.torture.network import Network, make_network

START_SECONDS = 60.0
LOOK_SECONDS = 0.05
CALM_LEASES = 3.0  # the peace at the end


@dataclass(frozen=True)
class Settings:
    hosts: int = 5
    guests: int = 7
    k: int = 3
    minutes: float = 5.0
    seed: int = 1
    lease: float = 2.0  # seconds
    every: float = 1.0  # seconds between faults, on average


class Torture:
    def __init__(self, settings: Settings, log: Callable[[str], None]) -> None:
        self.settings = settings
        self.log = log
        self.random = random.Random(settings.seed)
        self.folder = Path(tempfile.mkdtemp(prefix="fairgate-torture-"))
        self.results = self.folder / "results"
        self.results.touch(0o600)
        self.began = 0

    def run(self, progress: Callable[[float], None]) -> Verdict:
        """The logs stay only if something is wrong."""
        try:
            verdict = self.run_to_the_end(progress)
        except KeyboardInterrupt:
            shutil.rmtree(self.folder)
            raise
        if not verdict.wrong:
            shutil.rmtree(self.folder)
        return verdict

    def run_to_the_end(self, progress: Callable[[float], None]) -> Verdict:
        settings = self.settings
        with ExitStack() as stack:
            network = self.make_network()
            stack.callback(network.close)
            hosts = self.make_hosts(network)
            for host in hosts:
                stack.callback(host.end)
            self.start(hosts)
            faults = Faults(hosts, network, settings.lease, self.plan(), self.random, log=self.say)
            self.torment(faults, progress)
            calm = now()
            faults.mend(everything=True)
            self.wait_for(lambda: now() - calm > CALM_LEASES * settings.lease * SECOND)
            over = now()
        return self.judge(hosts, faults, calm, over)

    def make_network(self) -> Network:
        try:
            return make_network(self.settings.hosts)
        except BadInput:
            shutil.rmtree(self.folder)  # there are no logs yet
            raise

    def make_hosts(self, network: Network) -> list[Host]:
        settings = self.settings
        keys = make_keys(self.folder, network, settings.hosts)
        create = ["--create", "--lease", f"{settings.lease:g}"]
        join = [word for number in range(settings.hosts) for word in ("--join", network.address(number))]
        return [
            Host(number, network, self.folder / f"host{number}", keys[number], join if number else create)
            for number in range(settings.hosts)
        ]

    def plan(self) -> GuestPlan:
        settings = self.settings
        return GuestPlan("", "", GATE, settings.k, str(self.results), settings.seed * 1000, CLUSTER)

    def start(self, hosts: list[Host]) -> None:
        for host in hosts:
            host.start_peer()
        for number in range(self.settings.guests):
            hosts[number % len(hosts)].start_guest(self.plan())
        until = time.monotonic() + START_SECONDS
        while len(self.entered()) < self.settings.guests:
            if time.monotonic() > until or any(host.peer is None or not host.peer.is_running() for host in hosts):
                raise BadInput(f"the cluster of the torture did not start: see the logs in {self.folder}")
            time.sleep(LOOK_SECONDS)
        self.began = now()

    def entered(self) -> set[str]:
        """The guests that have entered."""
        lines = self.results.read_text().splitlines()
        return {line.split()[0] for line in lines if " enters " in line}

    def torment(self, faults: Faults, progress: Callable[[float], None]) -> None:
        end = time.monotonic() + self.settings.minutes * 60
        due = time.monotonic()
        while (left := end - time.monotonic()) > 0:
            progress(self.settings.minutes * 60 - left)
            faults.mend()
            if time.monotonic() >= due:
                faults.cause_one()
                due = time.monotonic() + self.random.expovariate(1 / self.settings.every)
            time.sleep(LOOK_SECONDS)

    def since(self, when: int) -> float:
        return (when - self.began) / SECOND

    def say(self, what: str) -> None:
        self.log(f"{self.since(now()):7.2f} s  {what}")

    @staticmethod
    def wait_for(condition: Callable[[], bool]) -> None:
        while not condition():
            time.sleep(LOOK_SECONDS)

    def judge(self, hosts: list[Host], faults: Faults, calm: int, over: int) -> Verdict:
        history = read(self.results, [kill for host in hosts for kill in host.kills])
        living = frozenset([guest.name for host in hosts for guest in host.guests])
        judge = Judge(history, self.settings.k, self.began, over, faults.all, faults.absences)
        return judge.verdict(faults.done, Calm(calm, living), self.folder)


def read(results: Path, kills: list[tuple[str, int]]) -> History:
    """The history, with the ends of guests that were killed."""
    history = History()
    for line in results.read_text().splitlines():
        if line.endswith(END):
            history.told(line.removesuffix(END))
    for name, when in kills:
        history.end(name, when)
    return history


def make_keys(folder: Path, network: Network, hosts: int) -> list[Path | None]:
    """Keys for every host. Loopback needs a shared secret instead."""
    from fairgate.net import keys  # noqa: PLC0415 (cryptography is slow to import)

    authority = folder / "keys"
    keys.init(authority)
    return [keys_of(authority, network.address(number), folder / f"keys{number}") for number in range(hosts)]


def keys_of(authority: Path, address: str, folder: Path) -> Path:
    from fairgate.net import keys  # noqa: PLC0415

    name = address.rpartition(":")[0]
    if not (authority / f"{name}.crt").exists():
        keys.add(authority, name)
    folder.mkdir(mode=0o700)
    for file in ("ca.crt", f"{name}.crt", f"{name}.key"):
        shutil.copy(authority / file, folder / file)
        os.chmod(folder / file, 0o600)
    return folder
