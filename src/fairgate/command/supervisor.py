"""Supervises a command inside a gate until it ends: signals, the terminal, and the loss of its permit.

The command is ended according to a *plan*: a list of times, each with the signal that its process group gets then. With
a lease there is a plan from the start. If the permit is lost for another reason, a plan is made at that moment.
"""

from __future__ import annotations

import signal
from collections.abc import Callable

from fairgate.arguments import SECOND
from fairgate.command.process import Command
from fairgate.command.signals import Signals
from fairgate.command.terminal import Terminal, stop_our_group
from fairgate.room.calls import clock
from fairgate.room.system import is_populated

TYPE_CHECKING = False  # see room/__init__.py
if TYPE_CHECKING:
    from typing import Protocol

    Plan = list[tuple[int, signal.Signals]]

    class Supervised(Protocol):
        """The permit of a command, as its supervisor sees it."""

        @property
        def deadline(self) -> int:
            """When the lease ends, in ns on CLOCK_BOOTTIME; 0 if there is none."""

        @property
        def shared(self) -> bool:
            """Whether the processes that the command has left count too."""

        @property
        def wakes(self) -> int:
            """A descriptor that can be read when `is_lost` should be asked, or -1."""

        @property
        def look_seconds(self) -> float | None:
            """How often `is_lost` should be asked in any case."""

        def is_lost(self) -> bool: ...

        def freed_at(self) -> int:
            """When others may get the slot of a lost permit, in ns on CLOCK_BOOTTIME; 0 if that is at once."""

        def before_stop(self) -> None:
            """Called before this process stops."""


TERM, KILL, WARN = "term", "kill", "warn"
EARLY = SECOND // 10  # ns: SIGKILL is sent this long before the lease expires, so that nobody overlaps the next holder
LOOK_SECONDS = 0.02  # interval for polling a process group, whose end is not reported
JOB_CONTROL = (signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)


class LossPolicy:
    """What happens to the command when its permit is lost: TERM, KILL or WARN, and the time between two signals."""

    def __init__(self, on_lost: str, grace: float) -> None:
        self.on_lost = on_lost
        self.grace = int(grace * SECOND)

    def at_lease(self, deadline: int) -> Plan:
        end = deadline - EARLY
        first = min(deadline - self.grace, end)
        return {TERM: [(first, signal.SIGTERM), (end, signal.SIGKILL)], KILL: [(end, signal.SIGKILL)],
                WARN: []}[self.on_lost]  # fmt: skip

    def at_loss(self, freed_at: int) -> Plan:
        now = clock()
        end = min(now + self.grace, max(freed_at - EARLY, now)) if freed_at else now + self.grace
        return {TERM: [(now, signal.SIGTERM), (end, signal.SIGKILL)], KILL: [(now, signal.SIGKILL)],
                WARN: []}[self.on_lost]  # fmt: skip


class Supervisor:
    def __init__(
        self,
        command: Command,
        signals: Signals,
        terminal: Terminal,
        policy: LossPolicy,
        permit: Supervised,
        tell: Callable[[str], None],
    ) -> None:
        self.command = command
        self.signals = signals
        self.terminal = terminal
        self.policy = policy
        self.permit = permit
        self.tell = tell
        self.plan = policy.at_lease(permit.deadline) if permit.deadline else []
        self.lost = False

    def supervise(self) -> int:
        """Returns the command's exit code once it has ended, and if there is a plan, its whole process group too."""
        while self.command.status is None or (self.plan and self.has_left_processes()):
            self.signals.wait(self.patience(), -1 if self.lost else self.permit.wakes)
            for signum in self.signals.take():
                if signum not in (signal.SIGCHLD, signal.SIGCONT):
                    self.command.send(signum)
            self.command.look()
            if self.command.stopped in JOB_CONTROL:
                self.stop(self.command.stopped)
            self.look_at_permit()
            self.follow_plan()
        self.terminal.take_back(self.command.pid)
        return self.command.status

    def has_left_processes(self) -> bool:
        return self.permit.shared and is_populated(self.command.pid)

    def patience(self) -> float | None:
        """Seconds until the next thing to do without an event; None if there is none."""
        times = [when for when, _ in self.plan[:1]]
        if self.permit.deadline and not self.lost:
            times.append(self.permit.deadline)
        waits = [max(when - clock(), 0) / SECOND for when in times]
        if self.permit.look_seconds is not None:
            waits.append(self.permit.look_seconds)
        if self.command.status is not None:
            waits.append(LOOK_SECONDS)
        return min(waits, default=None)

    def look_at_permit(self) -> None:
        if not self.lost and self.permit.is_lost():
            self.lost = True
            self.plan = sorted([*self.plan, *self.policy.at_loss(self.permit.freed_at())])

    def follow_plan(self) -> None:
        while self.plan and self.plan[0][0] <= clock():
            _, signum = self.plan.pop(0)
            self.command.send(signum)
            self.command.send(signal.SIGCONT)  # a stopped process would not act on the signal
            if not self.lost:
                self.tell_of_end(signum)

    def tell_of_end(self, signum: signal.Signals) -> None:
        left = max(self.permit.deadline - clock(), 0) / SECOND
        whom = "the command" if self.command.status is None else "the processes that the command left"
        self.tell(f"the lease ends in {round(left, 1):g} s: sent {signum.name} to {whom}")

    def stop(self, signum: int) -> None:
        """The command was stopped by Ctrl-Z, or by using the terminal from the background."""
        if signum != signal.SIGTSTP and self.terminal.is_ours():
            self.terminal.give(self.command.pid)
        else:
            self.terminal.take_back(self.command.pid)
            self.permit.before_stop()
            stop_our_group()
            if signal.SIGCONT not in self.signals.arrived and signum != signal.SIGTSTP:
                self.command.send(signal.SIGHUP)  # there is no shell to continue it: hang up, as the kernel does
            if self.terminal.is_ours():
                self.terminal.give(self.command.pid)
        self.command.send(signal.SIGCONT)
