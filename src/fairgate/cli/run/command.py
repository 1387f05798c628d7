"""`fairgate run`: a command inside of a gate."""

import os
import shlex
import shutil
import signal
import sys
import threading
import time
from collections.abc import Sequence

from fairgate import sync
from fairgate.cli.exits import BAD_INPUT, WRONG, complain, log_as_complaints
from fairgate.cli.run.options import Options, read_options
from fairgate.errors import BadInput, FairgateError
from fairgate.live.command import KILLED, Command
from fairgate.live.detach import can_detach, detach
from fairgate.live.permit import SECOND
from fairgate.live.signals import FORWARDED, Interrupted, Signals
from fairgate.live.supervisor import LOOK_SECONDS, LossPolicy, Supervisor
from fairgate.live.terminal import Terminal, stop_our_group
from fairgate.net import occupancy
from fairgate.net.access import Access
from fairgate.net.occupancy import Held, occupy
from fairgate.net.runtime import runtime_folder

CANNOT_RUN, NOT_FOUND = 126, 127
LONGEST_NOTE = 200


def run_arguments(arguments: Sequence[str]) -> int:
    log_as_complaints()
    try:
        return run(read_options(arguments))
    except BadInput as wrong:
        complain(wrong)
        return BAD_INPUT
    except FairgateError as wrong:
        complain(wrong)
        return WRONG


def run(options: Options) -> int:
    """Asks again after having been stopped: whoever stands still in a queue would hold up all behind."""
    code = why_not_run(options.command[0])
    if code:
        return code
    signals = Signals()
    rule = runtime_folder()
    until = None if options.wait is None else time.monotonic() + options.wait
    while True:
        try:
            with signals.raised():
                peer = options.net.peer()
            with peer, options.net.served(peer, complain):
                gate = peer.semaphore(options.gate, options.k, options.protocol)
                with signals.raised():
                    permit = ask(gate, options, until)
                return options.code if permit is None else Inside(permit, options, signals, rule).run()
        except Interrupted as by:
            if by.signum != signal.SIGTSTP:
                return KILLED + by.signum
        stop_our_group()


def ask(gate: sync.Semaphore, options: Options, until: float | None) -> sync.Permit | None:
    note = shlex.join(options.command)[:LONGEST_NOTE]
    if options.now:
        return gate.try_acquire(options.lease, note)
    return gate.acquire(None if until is None else until - time.monotonic(), options.lease, note)


class Inside:
    def __init__(self, permit: sync.Permit, options: Options, signals: Signals, rule: Access) -> None:
        self.permit = permit
        self.options = options
        self.signals = signals
        self.terminal = Terminal()
        ticket = permit.ticket
        self.held = occupy(rule, Held(options.gate, ticket.ident, ticket.slot, ticket.deadline))
        self.command = Command(options.command, self.environ(), self.held, not options.close)
        self.ghost = False

    def environ(self) -> dict[str, str]:
        permit, left = self.permit, self.permit.left()
        told = {"GATE": self.options.gate, "SLOT": permit.slot, "FENCE": permit.fence}
        if left is not None:
            told["DEADLINE"] = int(time.time() + left)
        return os.environ | {f"FAIRGATE_{name}": "" if value is None else str(value) for name, value in told.items()}

    def run(self) -> int:
        """The command, from its start to the end of its permit; its exit code."""
        whole_terminal = sys.stdin.isatty() and sys.stdout.isatty() and self.terminal.is_ours()
        try:
            self.command.start(self.signals, self.terminal if whole_terminal else None)
        except OSError as wrong:
            self.leave()
            return cannot_run(self.options.command[0], wrong)
        threading.Thread(target=self.tell_of_loss, daemon=True).start()
        rule = LossPolicy(self.options.on_lost, int((self.options.grace or 0) * SECOND))
        plan = rule.at_lease(self.permit.ticket.deadline) if self.options.lease else []
        code = Supervisor(
            self.command, self.signals, self.terminal, rule, self.is_lost, self.before_stop, plan
        ).supervise()
        self.leave()
        return code

    def tell_of_loss(self) -> None:
        self.permit.lost.wait()
        self.signals.news()

    def is_lost(self) -> bool:
        """A ghost is told nothing, but who breaks its permit removes its file."""
        if self.ghost:
            lost = not self.held.path.exists()
            if lost:
                complain(f"gate {self.options.gate}: the permit is lost: somebody broke it")
            return lost
        if self.permit.lost:
            self.held.path.unlink(missing_ok=True)  # whatever goes on is outside
        return self.permit.lost.is_set()

    def before_stop(self) -> None:
        if can_detach(self.permit.engine):
            self.stay()
        else:
            complain(f"gate {self.options.gate} may stand still until this is continued: fg")

    def stay(self) -> None:
        if not self.ghost:
            self.ghost = True
            detach(self.permit.engine, self.permit.gate, self.permit.ticket)

    def leave(self) -> None:
        """The slot is free, unless something that the command started is still there."""
        os.close(self.held.file)
        if not can_detach(self.permit.engine):
            self.outlast()
        if occupancy.read(self.held.path) is None:
            self.permit.release()
        else:
            self.stay()

    def outlast(self) -> None:
        """Until it is gone: between hosts nobody else would keep the slot for it."""
        while not self.is_lost() and occupancy.read(self.held.path) is not None:
            self.signals.wait(LOOK_SECONDS)
            for signum in self.signals.take():
                if signum in FORWARDED:
                    self.command.send(signum)


def why_not_run(word: str) -> int:
    """Before we wait for long: its exit code if it cannot be run, else 0."""
    if shutil.which(word) is not None:
        return 0
    if shutil.which(word, os.F_OK) is None:
        return cannot_run(word, FileNotFoundError(2, "there is no such command"))
    return cannot_run(word, PermissionError(13, "it may not be executed"))


def cannot_run(word: str, wrong: OSError) -> int:
    complain(f"cannot run {word}: {wrong.strerror}")
    return NOT_FOUND if isinstance(wrong, FileNotFoundError) else CANNOT_RUN
