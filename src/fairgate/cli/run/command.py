"""`fairgate run`: run a command inside a gate.

1. Join as a peer, open the gate and wait for a permit. A signal ends the wait; Ctrl-Z leaves the queue, stops the
   process, and queues again when it is continued.
2. Write an occupancy file (net/occupancy.py), which the command inherits, then start the command.
3. Supervise it (live/supervisor.py) until it ends: forward signals, hand over the terminal, enforce the lease.
4. Release the slot. If processes that the command started are still running, leave the slot to them as a ghost
   (live/detach.py); in a cluster, where nobody would watch a ghost, wait for them instead.
"""

import os
import shlex
import shutil
import signal
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from fairgate import sync
from fairgate.arguments import SECOND
from fairgate.cli.exits import BAD_INPUT, WRONG, complain, log_as_complaints
from fairgate.cli.run.options import Options, read_options
from fairgate.errors import BadInput, FairgateError
from fairgate.live.command import KILLED, Command
from fairgate.live.detach import can_detach, detach
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
    """Run `fairgate run` with these arguments and return its exit code."""
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
    """Wait for a permit and run the command; returns the exit code.

    A process that is stopped while it waits leaves the queue first, because it would hold up everyone behind it. When
    it is continued, it joins and queues again.
    """
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
    """The command while it is inside the gate, from its start to the release of its slot."""

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
        """Run the command until it ends and its slot is given back; returns its exit code."""
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
            self.command, self.signals, self.terminal, rule, self.is_lost, self.before_stop, self.tell_of_end, plan
        ).supervise()
        self.leave()
        return code

    def tell_of_loss(self) -> None:
        self.permit.lost.wait()
        self.signals.news()

    def tell_of_end(self, signum: signal.Signals) -> None:
        """The supervisor has sent this signal because the lease is about to end."""
        left = max(self.permit.left() or 0.0, 0.0)
        whom = "the command" if self.command.status is None else "the processes that the command left"
        complain(f"the lease ends in {round(left, 1):g} s: sent {signum.name} to {whom}")

    def is_lost(self) -> bool:
        """Has the permit been lost? A ghost is not notified, but `fairgate break` removes its occupancy file."""
        if self.ghost:
            lost = not self.held.path.exists()
            if lost:
                complain(f"gate {self.options.gate}: the permit is lost: it was revoked by fairgate break")
            return lost
        if self.permit.lost:
            self.held.path.unlink(missing_ok=True)  # processes that keep running no longer occupy the slot
        return self.permit.lost.is_set()

    def before_stop(self) -> None:
        if can_detach(self.permit.engine):
            self.stay()
        else:
            complain(f"gate {self.options.gate} may block until this job is continued (fg)")

    def stay(self) -> None:
        """Leave the peers but keep the slot, as a ghost."""
        if not self.ghost:
            self.ghost = True
            detach(self.permit.engine, self.permit.gate, self.permit.ticket)

    def leave(self) -> None:
        """Free the slot, or leave it to processes that the command started and that are still running."""
        os.close(self.held.file)
        if not can_detach(self.permit.engine):
            self.outlast()
        if occupancy.read(self.held.path) is None:
            self.permit.release()
        else:
            self.stay()

    def outlast(self) -> None:
        """Wait for all processes of the command to end: in a cluster no other peer would keep the slot for them."""
        while not self.is_lost() and occupancy.read(self.held.path) is not None:
            self.signals.wait(LOOK_SECONDS)
            for signum in self.signals.take():
                if signum in FORWARDED:
                    self.command.send(signum)


def why_not_run(word: str) -> int:
    """The exit code if `word` cannot be run, else 0. Checked before the wait for the gate, which may be long."""
    if shutil.which(word) is not None:
        return 0
    if os.sep in word and Path(word).is_dir():
        return cannot_run(word, IsADirectoryError(21, "it is a directory"))
    if shutil.which(word, os.F_OK) is None:
        return cannot_run(word, FileNotFoundError(2, "command not found"))
    return cannot_run(word, PermissionError(13, "it is not executable"))


def cannot_run(word: str, wrong: OSError) -> int:
    complain(f"cannot run {word}: {wrong.strerror}")
    return NOT_FOUND if isinstance(wrong, FileNotFoundError) else CANNOT_RUN
