"""`fairgate run` with a gate of a cluster: this process becomes a peer.

Nobody else could keep the slot, so this process stays until everything that the command started has ended. The command
inherits the writing end of a pipe: the other end shows when the last process that inherited it has ended.
"""

import os
import shlex
import signal
import time
from typing import cast

from fairgate import sync
from fairgate.cli.exits import complain, log_as_complaints
from fairgate.cli.network.options import JOIN_OPTIONS, OBSERVE_OPTIONS
from fairgate.cli.network.settings import NetworkSettings
from fairgate.cli.run.inside import run_inside
from fairgate.cli.run.nested import HELD
from fairgate.cli.run.on_host import LONGEST_NOTE
from fairgate.cli.run.options import Options
from fairgate.command.process import KILLED, Command
from fairgate.command.signals import FORWARDED, Interrupted, Signals
from fairgate.command.supervisor import LOOK_SECONDS
from fairgate.command.terminal import stop_our_group
from fairgate.errors import BadInput
from fairgate.live.cluster_options import JOIN_SECONDS
from fairgate.live.cluster_permit import HeldTicket
from fairgate.room.system import is_populated

PERMIT_SECONDS = 0.05  # how often to ask whether the permit was lost
SHORTEST_JOIN = 5.0  # seconds: joining takes a moment, even if -n or -w says not to wait


def run_in_cluster(options: Options, program: str) -> int:
    """Wait for a permit and run the command; returns the exit code.

    A process that is stopped while it waits leaves the queue first, because it would hold up everyone behind it. When
    it is continued, it joins and queues again.
    """
    network = settings(options)
    protocol = str(options.network["protocol"]) if "protocol" in options.network else None
    log_as_complaints()
    signals = Signals()
    signals.catch_stops()
    until = None if options.wait is None else time.monotonic() + options.wait
    while True:
        try:
            with signals.raised():
                peer = network.peer(first=(options.gate, options.k, protocol))
            with peer, network.served(peer, complain):
                gate = peer.semaphore(options.gate, options.k, protocol)
                with signals.raised():
                    permit = ask(gate, options, until)
                if permit is None:
                    return options.code
                return run_inside(ClusterPermit(permit, not options.close, signals), program, options, signals)
        except Interrupted as by:
            if by.signum != signal.SIGTSTP:
                return KILLED + by.signum
        stop_our_group()


def settings(options: Options) -> NetworkSettings:
    """Raises BadInput if the options are not those of a cluster."""
    unset: dict[str, object] = dict.fromkeys((*JOIN_OPTIONS, *OBSERVE_OPTIONS))
    given = {name: value for name, value in options.network.items() if name != "protocol"}
    network = NetworkSettings.of(unset | {"mdns": False, "insecure": False} | given)
    network.check()
    if not network.between_hosts:
        name = next(iter(options.network))
        raise BadInput(f"--{name} is for clusters (see --join): {NOT_ON_HOST[name]}")
    if options.permits > 1:
        raise BadInput(f"--permits {options.permits} is for gates of one host: a cluster grants one slot at a time")
    wait = 0.0 if options.now else options.wait
    return network if wait is None else network.within(min(max(wait, SHORTEST_JOIN), JOIN_SECONDS))


NOT_ON_HOST = {
    "protocol": "the processes of one host share a table and run no protocol",
    "journal": "the processes of one host share a table and send no messages to record",
    "metrics": "those of this host's gates are served by `fairgate peer --metrics PORT`",
}


def ask(gate: sync.Semaphore, options: Options, until: float | None) -> sync.Permit | None:
    left = None if until is None else max(until - time.monotonic(), 0)
    note = shlex.join(options.command)[:LONGEST_NOTE]
    return gate.acquire(0 if options.now else left, lease=options.lease, note=note)


class ClusterPermit:
    """See `CommandPermit`."""

    wakes = -1
    look_seconds = PERMIT_SECONDS

    def __init__(self, permit: sync.Permit, shared: bool, signals: Signals) -> None:
        self.permit = permit
        self.own = cast(HeldTicket, permit.held)
        self.gate = permit.gate
        self.slots = permit.slots
        self.fence = permit.fence
        self.deadline = self.own.ticket.deadline  # the lease of this peer is raised again and again
        self.held = os.environ.get(HELD, "")
        self.shared = shared
        self.signals = signals
        self.reader, self.writer = os.pipe()

    def hand_to(self, group: int) -> None:
        os.set_inheritable(self.writer, self.shared)

    def is_lost(self) -> bool:
        """The peer has told of the loss."""
        return bool(self.permit.lost)

    def freed_at(self) -> int:
        """If this peer has lost its lease, others wait until that is over. A revoked permit is free at once."""
        lease = self.own.engine.lease
        return 0 if lease.is_valid() else lease.end

    def before_stop(self) -> None:
        complain(f"gate {self.gate} may block until this job is continued (fg)")

    def leave(self, command: Command) -> None:
        """Wait for all processes of the command to end, unless the permit is lost."""
        os.close(self.writer)
        while command.pid and self.shared and not self.is_lost() and self.is_occupied(command):
            self.signals.wait(LOOK_SECONDS)
            for signum in self.signals.take():
                if signum in FORWARDED:
                    command.send(signum)
        self.permit.release()

    def is_occupied(self, command: Command) -> bool:
        """Has a process of the command the pipe, or is in its group?"""
        os.set_blocking(self.reader, False)
        try:
            os.read(self.reader, 1)
        except BlockingIOError:
            return True
        return is_populated(command.pid)
