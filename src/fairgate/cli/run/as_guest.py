"""`fairgate run` with a gate of a cluster, on a host whose standing peer is in that cluster: this process is its guest.

It waits in a room, as with a gate of this host, and the peer lets it in. It imports no more than that takes, because a
user's command waits for all of it.
"""

from __future__ import annotations

from fairgate.arguments import SECOND
from fairgate.cli.exits import complain
from fairgate.cli.run.inside import run_inside
from fairgate.cli.run.on_host import HostPermit, nested, note
from fairgate.cli.run.options import Options
from fairgate.command.process import KILLED
from fairgate.command.signals import Interrupted, Signals
from fairgate.errors import BadInput
from fairgate.room.calls import clock
from fairgate.room.clusters import NO_MAJORITY, StandingPeer, file_name, host_of_guest
from fairgate.room.guest import acquire, guest_room
from fairgate.room.permit import Permit
from fairgate.room.room import Room

SOONEST = 0.02  # seconds between two looks at the promise of the peer
NOT_RUNNING = "this host's standing peer is not running"
SHARE = 3  # the command is ended this part of the peer's lease before its end, or earlier by --grace if that is less


def standing_for(options: Options) -> StandingPeer | None:
    """The standing peer of this host in the cluster that the options name. BadInput if a guest cannot have them."""
    given = options.network
    seeds = tuple([str(seed) for seed in as_list(given.get("join"))])
    if not seeds and not given.get("mdns"):
        return None
    return host_of_guest(seeds, str(given["cluster"]) if given.get("cluster") else None, list(given), "--")


def as_list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def run_as_guest(options: Options, program: str, standing: StandingPeer) -> int:
    """Wait for a permit and run the command; returns the exit code.

    If the peer is not running, this process waits in the room: the peer lets it in when it is back.
    """
    if options.permits > 1:
        raise BadInput(f"--permits {options.permits} is for gates of one host: a cluster grants one slot at a time")
    if not standing.is_alive():
        if options.now or options.wait == 0:
            complain(NOT_RUNNING)
            return options.code
        complain(f"{NOT_RUNNING}; waiting (if it has none any more, remove {standing.folder})")
    elif standing.guarantee == NO_MAJORITY:
        complain(f"most voters of cluster {standing.cluster} do not answer: nobody is let in until they do")
    protocol = str(options.network.get("protocol", ""))
    signals = Signals()
    try:
        with signals.raised():
            room = guest_room(standing, file_name(options.gate), options.k, protocol)
        with room:
            with signals.raised():
                found = nested(room, options) or ask(room, options)
            if found is None:
                return options.code
            signals.catch_stops()
            permit = GuestPermit(room, found, not options.close, options) if isinstance(found, Permit) else found
            return run_inside(permit, program, options, signals)
    except Interrupted as by:
        return KILLED + by.signum


def ask(room: Room, options: Options) -> Permit | None:
    return acquire(room, 0 if options.now else options.wait, 1, options.lease, note(options.command))


class GuestPermit(HostPermit):
    """See `CommandPermit`. It also ends with the promise of the peer, unless the peer renews that."""

    def __init__(self, room: Room, permit: Permit, shared: bool, options: Options) -> None:
        super().__init__(room, permit, shared)
        self.fence = permit.fence or None
        promised = permit.promised()
        left = (promised - clock()) / SECOND if promised else 0.0
        self.margin = int(min(options.grace_seconds(None), left / SHARE) * SECOND)
        self.expires = 0  # when the promise of the peer ends, once it is not expected to be renewed

    @property
    def look_seconds(self) -> float | None:
        """When the promise is about to end, unless it is renewed meanwhile."""
        promised = self.permit.promised()
        return max((promised - self.margin - clock()) / SECOND, SOONEST) if promised else None

    def is_lost(self) -> bool:
        promised = self.permit.promised()
        if 0 < promised - self.margin <= clock() < promised:
            self.expires = promised
            self.tell(f"the peer of this host has not renewed its lease, which ends in {self.margin / SECOND:.1f} s")
            return True
        return super().is_lost()

    def freed_at(self) -> int:
        return self.expires
