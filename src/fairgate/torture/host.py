"""A host of a torture: a directory and a network of its own, its standing peer, and its guests."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

from fairgate.torture.guest import GuestPlan, now
from fairgate.torture.network import Network, signals_wait

CLUSTER = "torture"
GATE = "gate"
END_SECONDS = 10.0


@dataclass
class Running:
    """A process, with the name that it reports under."""

    name: str
    process: subprocess.Popen[bytes]

    def send(self, what: signal.Signals) -> None:
        """The process is the leader of a group of its own."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, what)

    def is_running(self) -> bool:
        return self.process.poll() is None


class Host:
    def __init__(self, number: int, network: Network, folder: Path, keys: Path | None, options: Sequence[str]) -> None:
        self.number = number
        self.network = network
        self.folder = folder
        self.keys = keys
        self.options = list(options)
        self.address = network.address(number)
        self.peer: Running | None = None
        self.guests: list[Running] = []
        self.leaving: list[Running] = []  # guests that were asked to leave
        self.started = 0  # guests so far
        self.kills: list[tuple[str, int]] = []  # guests that were killed, and when
        folder.mkdir(mode=0o700)

    def start_peer(self) -> None:
        """The same command at every start: the first host creates the cluster once, and then joins it again."""
        state = ["--state", str(self.folder / "state")]
        where = ["--listen", self.address, "--cluster", CLUSTER, *state]
        command = ["-m", "fairgate", "peer", *self.options, *where]
        keys = ["--keys", str(self.keys)] if self.keys is not None else []
        with signals_wait():
            self.peer = self.start(f"host{self.number}", [*command, *keys])

    def restart_peer(self, leaving: Running) -> None:
        """The peer was asked to leave: starts the next one once it has ended."""
        with suppress(subprocess.TimeoutExpired):
            leaving.process.wait(END_SECONDS)
        self.kill_rest(leaving)
        self.start_peer()

    def start_guest(self, plan: GuestPlan) -> None:
        self.started += 1
        name = f"host{self.number}-guest{self.started}"
        plan = msgspec.structs.replace(plan, name=name, address=self.address, seed=plan.seed + self.started)
        arguments = ["-m", "fairgate.torture.guest", msgspec.json.encode(plan).decode()]
        with signals_wait():
            self.guests.append(self.start(name, arguments))

    def start(self, name: str, arguments: list[str]) -> Running:
        with (self.folder / f"{name}.log").open("ab") as log:
            command = [*self.network.entered(self.number), sys.executable, *arguments]
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self.environment(),
                start_new_session=True,
            )
        return Running(name, process)

    def environment(self) -> dict[str, str]:
        return {**os.environ, "HOME": str(self.folder), "FAIRGATE_DIR": str(self.folder / "gates")}

    def kill(self, victim: Running) -> None:
        if victim in self.guests:
            self.guests.remove(victim)
            self.kills.append((victim.name, now()))  # before the kill: whatever it reports until then counts
        victim.send(signal.SIGKILL)
        victim.process.wait()

    def living(self) -> list[Running]:
        return [*self.guests, *self.leaving, *([self.peer] if self.peer is not None else [])]

    def end(self) -> None:
        """Ends all processes: guests first, so that they leave while their peer is there."""
        for running in self.living():
            running.send(signal.SIGCONT)
        for group in ([*self.guests, *self.leaving], [self.peer] if self.peer is not None else []):
            for running in group:
                running.send(signal.SIGTERM)
            until = time.monotonic() + END_SECONDS
            for running in group:
                with suppress(subprocess.TimeoutExpired):
                    running.process.wait(max(until - time.monotonic(), 0.1))
                self.kill_rest(running)

    @staticmethod
    def kill_rest(running: Running) -> None:
        if running.is_running():
            running.send(signal.SIGKILL)
            running.process.wait()
