"""A command of `fairgate run` while it is inside, from its start to the release of its slots."""

from __future__ import annotations

import os
import time

from fairgate.arguments import SECOND
from fairgate.cli.exits import complain
from fairgate.cli.run.options import Options
from fairgate.command.process import CANNOT_RUN, NOT_FOUND, Command
from fairgate.command.signals import Signals
from fairgate.command.supervisor import LossPolicy, Supervisor
from fairgate.command.terminal import Terminal
from fairgate.room.calls import clock

TYPE_CHECKING = False  # see room/__init__.py
if TYPE_CHECKING:
    from typing import Protocol

    from fairgate.command.supervisor import Supervised

    class CommandPermit(Supervised, Protocol):
        """The permit of a command."""

        @property
        def gate(self) -> str: ...

        @property
        def slots(self) -> tuple[int, ...]:
            """None if the protocol of a cluster has no slots."""

        @property
        def fence(self) -> int | None: ...

        @property
        def held(self) -> str:
            """The gates that the command is inside, for FAIRGATE_HELD."""

        def hand_to(self, group: int) -> None:
            """Called in the child, before it becomes the command."""

        def leave(self, command: Command) -> None:
            """The command has ended: free the slots, or leave them to the processes that it has left."""


def run_inside(permit: CommandPermit, program: str, options: Options, signals: Signals) -> int:
    """Run the command until it ends and its slots are given back; returns its exit code."""
    terminal = Terminal()
    whole_terminal = os.isatty(0) and os.isatty(1) and terminal.is_ours()
    command = Command(program, options.command, environ(permit))
    left = (permit.deadline - clock()) / SECOND if permit.deadline else None
    policy = LossPolicy(options.on_lost, options.grace_seconds(left))
    try:
        command.start(signals, terminal if whole_terminal else None, permit.hand_to, lambda no: cannot_run(options, no))
        return Supervisor(command, signals, terminal, policy, permit, complain).supervise()
    finally:
        permit.leave(command)


def environ(permit: CommandPermit) -> dict[str, str]:
    told = {
        "GATE": permit.gate,
        "SLOT": "".join(map(str, permit.slots[:1])),
        "SLOTS": ",".join(map(str, permit.slots)),
        "FENCE": "" if permit.fence is None else str(permit.fence),
        "HELD": permit.held,
    }
    if permit.deadline:
        told["DEADLINE"] = str(int(time.time() + (permit.deadline - clock()) / SECOND))
    outer = {name: value for name, value in os.environ.items() if name != "FAIRGATE_DEADLINE"}
    return outer | {f"FAIRGATE_{name}": value for name, value in told.items()}


def cannot_run(options: Options, wrong: OSError) -> int:
    """Say so, and return the exit code."""
    complain(f"cannot run {options.command[0] or repr('')}: {wrong.strerror}")
    return NOT_FOUND if isinstance(wrong, FileNotFoundError) else CANNOT_RUN
