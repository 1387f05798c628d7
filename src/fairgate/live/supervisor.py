"""Minding a command that runs inside of a gate, until it has ended: signals, the terminal, and the loss of its permit.

What ends the command is a *plan*: moments, and the signal that its group gets then. A lease makes one from the start.
When the permit is lost by other ways, there is one from that moment on.
"""

import signal
from collections.abc import Callable
from dataclasses import dataclass, field

from fairgate.live.command import Command
from fairgate.live.permit import SECOND
from fairgate.live.signals import Signals
from fairgate.live.terminal import Terminal, stop_our_group
from fairgate.net.system import clock

TERM, KILL, IGNORE = "term", "kill", "ignore"
EARLY = SECOND // 10  # ns: killed so long before the lease is over, so that nobody is left when the next one comes in
LOOK_SECONDS = 0.02  # at a group that nobody tells us of
GHOST_SECONDS = 1.0  # at the permit, when we are no peer any more
JOB_CONTROL = (signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)

Plan = list[tuple[int, signal.Signals]]


@dataclass(frozen=True)
class LossPolicy:
    """What is done to the command when its permit is lost."""

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
    before_stop: Callable[[], None]  # we are about to be stopped, and the gate is to go on without us
    plan: Plan = field(default_factory=list)
    lost: bool = False
    ghost: bool = False  # stopped once: no peer any more, but still inside

    def supervise(self) -> int:
        """Until the command has ended, and what it started if that is to be ended too; its exit code."""
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
        """Seconds until there is something to do, whatever comes."""
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
            self.command.send(signal.SIGCONT)  # what is stopped would not hear of it

    def is_stopped(self, signum: int) -> None:
        """Ctrl-Z, or it wanted the terminal while it was not its turn."""
        if signum != signal.SIGTSTP and self.terminal.is_ours():
            self.terminal.give(self.command.pid)
        else:
            self.terminal.take_back(self.command.pid)
            if not self.ghost:
                self.before_stop()
                self.ghost = True
            stop_our_group()
            if signal.SIGCONT not in self.signals.arrived and signum != signal.SIGTSTP:
                self.command.send(signal.SIGHUP)  # no shell is left to give it the terminal: as the kernel does it
            if self.terminal.is_ours():
                self.terminal.give(self.command.pid)
        self.command.send(signal.SIGCONT)
