"""Supervises a command inside a gate until it ends: signals, the terminal, and the loss of its permit.

The command is ended according to a *plan*: a list of times, each with the signal that its process group gets then. With
a lease there is a plan from the start. If the permit is lost for another reason, a plan is made at that moment.
"""

import signal
from collections.abc import Callable
from dataclasses import dataclass, field

from fairgate.arguments import SECOND
from fairgate.live.command import Command
from fairgate.live.signals import Signals
from fairgate.live.terminal import Terminal, stop_our_group
from fairgate.net.system import clock

TERM, KILL, IGNORE = "term", "kill", "ignore"
EARLY = SECOND // 10  # ns: SIGKILL is sent this long before the lease expires, so that nobody overlaps the next holder
LOOK_SECONDS = 0.02  # interval for polling a process group, whose end is not reported
GHOST_SECONDS = 1.0  # interval for polling the permit once we are no longer a peer
JOB_CONTROL = (signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)

Plan = list[tuple[int, signal.Signals]]


@dataclass(frozen=True)
class LossPolicy:
    """What happens to the command when its permit is lost."""

    on_lost: str
    grace: int  # ns

    def at_lease(self, deadline: int) -> Plan:
        end = deadline - EARLY
        return {TERM: [(deadline - self.grace, signal.SIGTERM), (end, signal.SIGKILL)], KILL: [(end, signal.SIGKILL)],
                IGNORE: []}[self.on_lost]  # fmt: skip

    def at_loss(self) -> Plan:
        now = clock()
        return {TERM: [(now, signal.SIGTERM), (now + self.grace, signal.SIGKILL)], KILL: [(now, signal.SIGKILL)],
                IGNORE: []}[self.on_lost]  # fmt: skip


@dataclass
class Supervisor:
    command: Command
    signals: Signals
    terminal: Terminal
    rule: LossPolicy
    is_lost: Callable[[], bool]
    before_stop: Callable[[], None]  # called before we stop, so that the gate can go on without us
    lease_ends: Callable[[signal.Signals], None]  # called when a signal was sent because the lease is about to end
    plan: Plan = field(default_factory=list)
    lost: bool = False
    ghost: bool = False  # after the first stop: no longer a peer, but still inside

    def supervise(self) -> int:
        """Returns the command's exit code once it has ended, and if there is a plan, everything that it started too."""
        while self.command.status is None or (self.plan and self.command.is_alive()):
            self.signals.wait(self.patience())
            for signum in self.signals.take():
                if signum not in (signal.SIGCHLD, signal.SIGCONT):
                    self.command.send(signum)
            self.command.look()
            if self.command.stopped in JOB_CONTROL:
                self.is_stopped(self.command.stopped)
            self.look_at_permit()
            self.follow_plan()
        self.terminal.take_back(self.command.pid)
        return self.command.status

    def patience(self) -> float | None:
        """Seconds until the next thing to do without an event; None if there is none."""
        waits = [max(when - clock(), 0) / SECOND for when, _ in self.plan[:1]]
        if self.ghost:
            waits.append(GHOST_SECONDS)
        if self.command.status is not None:
            waits.append(LOOK_SECONDS)
        return min(waits, default=None)

    def look_at_permit(self) -> None:
        if not self.lost and self.is_lost():
            self.lost = True
            self.plan = sorted([*self.plan, *self.rule.at_loss()])

    def follow_plan(self) -> None:
        while self.plan and self.plan[0][0] <= clock():
            _, signum = self.plan.pop(0)
            self.command.send(signum)
            self.command.send(signal.SIGCONT)  # a stopped process would not act on the signal
            if not self.lost:
                self.lease_ends(signum)

    def is_stopped(self, signum: int) -> None:
        """The command was stopped by Ctrl-Z, or by using the terminal from the background."""
        if signum != signal.SIGTSTP and self.terminal.is_ours():
            self.terminal.give(self.command.pid)
        else:
            self.terminal.take_back(self.command.pid)
            if not self.ghost:
                self.before_stop()
                self.ghost = True
            stop_our_group()
            if signal.SIGCONT not in self.signals.arrived and signum != signal.SIGTSTP:
                self.command.send(signal.SIGHUP)  # there is no shell to continue it: hang up, as the kernel does
            if self.terminal.is_ours():
                self.terminal.give(self.command.pid)
        self.command.send(signal.SIGCONT)
