"""Gates between hosts compared with lock servers, all in one run: `make bench-hosts` (as root).

1. one lock, nothing done inside      3. k = 3, 2 ms inside      5. the cost of leases
2. one lock, 2 ms inside              4. hand-over               6. k = 3 with latency

Every host is a network namespace. Eight processes on five hosts contend for five seconds. With fairgate they are guests
of the standing peers of their hosts, which speak TLS; the names are those of protocols. Each lock server has a host of
its own, and speaks plain TCP. "CPU" includes the peers and servers.

For 4 and 6, every connection between hosts goes through a relay that holds the bytes back for 1 ms in each direction.
The unit of the hand-over is what one byte takes through such a relay, one way.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.table import Table

from bench.live import installed, show
from bench.relay import one_way
from fairgate.lab.contest import Load, Measured, conduct, measured, read
from fairgate.lab.rivals import HOSTS, SEMAPHORES, SERVERS, server_command
from fairgate.room.clusters import CLUSTERS, described
from fairgate.torture.host import CLUSTER, Host, Running
from fairgate.torture.network import Namespaces
from fairgate.torture.run import make_keys

COUNT, PROCESSES, SECONDS = 5, 8, 5.0
PROTOCOLS = ("one_line", "bv95", "centralised")
FOR_MANY = ("one_line", "centralised")  # k > 1
ONE_ONLY = f"bv95{HOSTS}"  # between hosts it is for k = 1
SERVER_PORT = 7500
RELAY_PORT = 7401
LEASE, NO_LEASE = "10", "3600"  # seconds; peers without leases only take their patience from it
READY_SECONDS = 60.0
DELAY = 0.001  # seconds, of a relay
STAY = 0.02  # seconds inside, for the hand-over
HAND_OVERS = 3  # rounds
ROUNDS = 5  # of 6


class LeaselessHost(Host):
    def start(self, name: str, arguments: list[str]) -> Running:
        return super().start(name, ["-m", "bench.leaseless", *arguments[2:]])


class Bench:
    """Hosts 0 to 4 are for the contenders, host 5 for a server."""

    def __init__(self, folder: Path, network: Namespaces) -> None:
        self.folder = folder
        self.network = network
        self.keys = make_keys(folder, network, COUNT)
        self.runs = 0
        self.serving: list[int] = []  # processes: the peers of the hosts, or the server

    def run(self, kind: str, load: Load, delay: float = 0.0, leases: bool = True) -> Measured:
        self.runs += 1
        folder = self.folder / f"run{self.runs}"
        folder.mkdir(mode=0o700)
        with self.served(kind, folder, delay, leases) as hosts:
            return self.contend(kind, load, folder, hosts)

    @contextmanager
    def served(self, kind: str, folder: Path, delay: float, leases: bool) -> Iterator[list[Host]]:
        """Starts what this kind needs; yields the hosts with their peers, none for a server."""
        self.serving = []
        with ExitStack() as stack:
            if kind in SERVERS:
                here = self.network.ip_of(COUNT)
                command = [*self.network.entered(COUNT), *server_command(kind, folder, SERVER_PORT, here)]
                quiet = subprocess.DEVNULL
                process = stack.enter_context(subprocess.Popen(command, cwd=folder, stdout=quiet, stderr=quiet))
                stack.callback(process.terminate)
                self.serving.append(process.pid)
                self.wait_for(0, f"{here}:{SERVER_PORT}")
                yield []
                return
            make_host = Host if leases else LeaselessHost
            create = ["--create", "--lease", LEASE if leases else NO_LEASE]
            join = ["--join", self.relay_of(0) if delay else self.network.address(0)]
            hosts = [
                make_host(i, self.network, folder / f"host{i}", self.keys[i], join if i else create)
                for i in range(COUNT)
            ]
            for host in hosts:
                stack.callback(host.end)
                if delay:
                    stack.enter_context(self.relayed(host, delay))
                host.start_peer()
                self.wait_for(host.number, host.address)
                wait_until_standing(host)
                assert host.peer is not None
                self.serving.append(host.peer.process.pid)
            yield hosts

    def relay_of(self, host: int) -> str:
        return f"{self.network.ip_of(host)}:{RELAY_PORT}"

    @contextmanager
    def relayed(self, host: Host, delay: float) -> Iterator[None]:
        """Others reach the peer of this host through a relay."""
        there = self.relay_of(host.number)
        command = [sys.executable, "-m", "bench.relay", there, host.address, str(delay)]
        with subprocess.Popen([*self.network.entered(host.number), *command]) as relay:
            self.wait_for(host.number, there)
            host.options += ["--advertise", there]
            try:
                yield
            finally:
                relay.terminate()

    def wait_for(self, host: int, address: str) -> None:
        """Waits until somebody listens."""
        name, port = address.split(":")
        probe = f"import socket; socket.create_connection(('{name}', {port}), 1)"
        until = time.monotonic() + READY_SECONDS
        command = [*self.network.entered(host), sys.executable, "-c", probe]
        while subprocess.run(command, check=False, capture_output=True).returncode:
            if time.monotonic() > until:
                raise RuntimeError(f"nobody listens at {address}: see {self.folder}")

    def run_alone(self, protocol: str, load: Load, delay: float) -> Measured:
        """One process contends with nobody. Another host was the first to use the gate."""
        self.runs += 1
        folder = self.folder / f"run{self.runs}"
        folder.mkdir(mode=0o700)
        with self.served(protocol + HOSTS, folder, delay, leases=True) as hosts:
            self.contend(protocol + HOSTS, replace(load, seconds=0.1), folder, hosts)
            return self.contend(protocol + HOSTS, load, folder, hosts[1:] + hosts[:1])

    def contend(self, kind: str, load: Load, folder: Path, hosts: list[Host]) -> Measured:
        files = [folder / f"times{i}" for i in range(load.processes)]
        workers = [self.start(kind, load, folder, number, file, hosts) for number, file in enumerate(files)]
        before = sum([spent(pid) for pid in self.serving])
        try:
            messages, cpu = conduct(workers)
        finally:
            for worker in workers:
                worker.kill()
        cpu += sum([spent(pid) for pid in self.serving]) - before
        return measured([read(file, who) for who, file in enumerate(files)], messages, cpu, load.seconds)

    def start(
        self, kind: str, load: Load, folder: Path, number: int, file: Path, hosts: list[Host]
    ) -> subprocess.Popen[str]:
        host = number % COUNT
        environment = os.environ | {"BENCH_SERVER": self.network.ip_of(COUNT), "BENCH_CLUSTER": CLUSTER}
        if hosts:
            environment |= {"BENCH_PEER": known_as(hosts[host]), **hosts[host].environment()}
            host = hosts[host].number
        words = [kind, str(load.k), str(SERVER_PORT), load.stay(), str(load.seconds), str(file)]
        command = [*self.network.entered(host), sys.executable, "-m", "fairgate.lab.contender", *words]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environment)


def wait_until_standing(host: Host) -> None:
    """Waits until the peer lets guests in."""
    folder = f"{host.environment()['FAIRGATE_DIR']}/{CLUSTERS}/{CLUSTER}"
    until = time.monotonic() + READY_SECONDS
    while described(folder) is None:
        if time.monotonic() > until:
            raise RuntimeError(f"no peer lets guests in at {folder}")
        time.sleep(0.01)


def known_as(host: Host) -> str:
    """The address of its peer in the roster."""
    return host.options[-1] if "--advertise" in host.options else host.address


def spent(pid: int) -> int:
    """ns of CPU time of this process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * 1_000_000_000 // os.sysconf("SC_CLK_TCK")


def show_hand_over(console: Console, bench: Bench, protocols: list[str]) -> None:
    """Rounds alternate, because the machine's speed varies. A byte rests as long as the load does."""
    taken: dict[str, list[float]] = {protocol: [] for protocol in protocols}
    trips = []
    for _ in range(HAND_OVERS):
        there, here, ip = bench.network.entered(1), bench.network.entered(0), bench.network.ip_of(1)
        trips.append(one_way(there, here, ip, DELAY, STAY))
        for protocol in protocols:
            load = Load(1, STAY, processes=COUNT, seconds=3.0)
            taken[protocol].append(bench.run(protocol + HOSTS, load, DELAY).hand_over)
    trip = median(trips)
    table = Table("4. hand-over between hosts, 1 ms between them", "median", "one-way trips")
    for protocol, found in taken.items():
        table.add_row(protocol, f"{median(found) * 1e3:.2f} ms", f"{median(found) / trip:.2f}")
    table.add_row("a byte through the relay, one way", f"{trip * 1e3:.2f} ms", "1")
    console.print(table)


def show_distant(console: Console, bench: Bench, protocols: list[str], rounds: int, seconds: float) -> None:
    """k = 3 with 1 ms between the hosts, in alternating rounds: medians."""
    table = Table("6. k = 3, 1 ms between the hosts", "grants/s", "wait p99/mean", "overtakes", "CPU")
    for stays, is_random in (("2 ms inside", False), ("exponential, mean 2 ms", True)):
        load = Load(3, 0.002, PROCESSES, seconds, is_random)
        runs = [{protocol: bench.run(protocol + HOSTS, load, DELAY) for protocol in protocols} for _ in range(rounds)]
        for protocol in protocols:
            found = [each[protocol] for each in runs]
            table.add_row(
                f"{protocol}, {stays}",
                f"{median([one.rate for one in found]):,.0f}",
                f"{median([one.wait_p99 / one.wait_mean for one in found]):.2f}",
                f"{median([one.overtakes for one in found]):.2f}",
                f"{median([one.cpu for one in found]) * 1e6:.0f} us",
            )
    console.print(table)
    waits = {
        protocol: bench.run_alone(protocol, Load(3, 0.02, 1, seconds), DELAY).wait_mean * 1e3 for protocol in protocols
    }
    told = ", ".join([f"{protocol} {wait:.2f} ms" for protocol, wait in waits.items()])
    console.print(f"   a process alone, on another host than the first user: it waits for {told}")


def show_cost(console: Console, bench: Bench, protocol: str, pairs: int, seconds: float) -> None:
    """What crash safety costs: the same load with and without leases, in turns."""
    load = Load(1, 0.0, PROCESSES, seconds)
    ratios = []
    for _ in range(pairs):
        without = bench.run(protocol + HOSTS, load, leases=False).rate
        ratios.append(bench.run(protocol + HOSTS, load).rate / without)
    console.print(f"5. grants/s with leases / without, {protocol}, median of {pairs} pairs: {median(ratios):.3f}"
                  f" ({min(ratios):.3f} to {max(ratios):.3f})")  # fmt: skip


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="python -m bench.hosts", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("--seconds", type=float, default=SECONDS, help="how long they contend (default: 5)")
    which = "which of the tables. May be repeated (default: 1 to 4)"
    made.add_argument("--table", type=int, metavar="N", action="append", choices=range(1, 7), help=which)
    made.add_argument("--only", metavar="NAME", action="append", choices=[*PROTOCOLS, *SERVERS],
                      help=f"one of: {', '.join([*PROTOCOLS, *SERVERS])}. May be repeated (default: all)")  # fmt: skip
    made.add_argument("--pairs", type=int, default=10, help="for table 5 (default: 10)")
    made.add_argument("--rounds", type=int, default=ROUNDS, help=f"for table 6 (default: {ROUNDS})")
    return made


def main() -> None:
    given = parser().parse_args()
    tables = given.table or range(1, 5)
    console = Console(width=170)
    with TemporaryDirectory(prefix="fgbench") as name, ExitStack() as stack:
        network = Namespaces(COUNT + 1)
        stack.callback(network.close)
        bench = Bench(Path(name), network)
        only = given.only or [*PROTOCOLS, *SERVERS]
        ours = [protocol + HOSTS for protocol in PROTOCOLS if protocol in only]
        kinds = [*ours, *installed(console, [server for server in SERVERS if server in only])]
        cases = [
            ("one lock, nothing inside", kinds, Load(1, 0.0, PROCESSES, given.seconds)),
            ("one lock, 2 ms inside", kinds, Load(1, 0.002, PROCESSES, given.seconds)),
            ("k = 3, 2 ms inside", [kind for kind in kinds if kind in (*ours, *SEMAPHORES) and kind != ONE_ONLY],
             Load(3, 0.002, PROCESSES, given.seconds)),
        ]  # fmt: skip
        for number, (title, some, load) in enumerate(cases, 1):
            if number in tables:
                show(console, f"{number}. {title}", {kind: bench.run(kind, load) for kind in some})
        if 4 in tables:
            show_hand_over(console, bench, [each for each in PROTOCOLS if each in only])
        if 5 in tables:
            show_cost(console, bench, "bv95", given.pairs, given.seconds)
        if 6 in tables:
            show_distant(console, bench, [each for each in FOR_MANY if each in only], given.rounds, given.seconds)


if __name__ == "__main__":
    main()
