"""The roster: which peers exist and which gates are open, as plain data with every change as a pure function.

A gate has *seats*: identities, each hosted by a peer. Whenever its seats change, the gate gets a new *view*: its seats
and a number higher than that of any earlier view of any gate. Peers agree on views (recovery/regenerate.py rebuilds the
protocol under each), so the keeper of the roster, the peer that created the cluster, only has to put all changes into
one order.

A gate with k permits needs k identities for its tokens to start at. Those that it lacks are *virtual* seats, which
belong to no request. They are hosted by the gate's *warden*, the host of its first seat.
"""

from dataclasses import dataclass

import msgspec
from msgspec.structs import replace

from fairgate.arguments import check_gate
from fairgate.core.ids import ID_LIMIT, SEAT_BITS, SEATS, identity
from fairgate.errors import BadInput, KMismatch

PEERS = ID_LIMIT >> SEAT_BITS  # ids of peers are random numbers below this; 0 is never used
EPOCH_ZERO = 1_704_067_200  # 2024-01-01, in seconds since 1970
EPOCHS = 1 << 31
MOST_REQUESTS = SEATS // 2  # of one peer at a time; virtual seats are numbered from the other end


class PeerRecord(msgspec.Struct, frozen=True):
    id: int
    pid: int
    socket: str  # its address
    uid: int
    since: int  # seconds since 1970, for display
    host: str = ""  # its host's name, for display


class SeatRecord(msgspec.Struct, frozen=True):
    ident: int
    host: int  # the peer that hosts it
    virtual: bool = False


class GateRecord(msgspec.Struct, frozen=True):
    name: str
    k: int
    protocol: str
    view: int  # its number; the fences given under it are above view * 2^32
    seats: tuple[SeatRecord, ...] = ()  # seats for requests come first; the first of all leads

    def idents(self) -> tuple[int, ...]:
        return tuple([seat.ident for seat in self.seats])


class Members(msgspec.Struct, frozen=True):
    version: int = 0
    epoch: int = 0  # the highest view number used so far
    peers: tuple[PeerRecord, ...] = ()
    gates: tuple[GateRecord, ...] = ()

    def gate(self, name: str) -> GateRecord | None:
        return next((gate for gate in self.gates if gate.name == name), None)

    def peer(self, ident: int) -> PeerRecord | None:
        return next((peer for peer in self.peers if peer.id == ident), None)


# The changes, as data, so that they can be sent to the keeper of the roster.


class Sit(msgspec.Struct, frozen=True, tag=True):
    """Adds seats of one peer to a gate, and opens the gate if necessary."""

    gate: str
    k: int
    protocol: str
    host: int
    idents: tuple[int, ...]


class Rise(msgspec.Struct, frozen=True, tag=True):
    """Gives up these seats."""

    gate: str
    idents: tuple[int, ...]


class Renew(msgspec.Struct, frozen=True, tag=True):
    """Makes a new view with the same seats: messages between them were lost, or their fences are running out."""

    gate: str


class Go(msgspec.Struct, frozen=True, tag=True):
    """Removes peers that leave."""

    peers: tuple[int, ...]


Change = Sit | Rise | Renew | Go


@dataclass(frozen=True)
class At:
    """The time of a change, in seconds since 1970."""

    seconds: int


def changed(members: Members, change: Change, at: At) -> Members:
    if isinstance(change, Sit):
        return sat_down(members, change, at)
    if isinstance(change, Rise):
        return risen(members, change, at)
    if isinstance(change, Renew):
        gate = members.gate(change.gate)
        return members if gate is None else with_gate(members, gate, at)
    return gone(members, change, at)


def sat_down(members: Members, change: Sit, at: At) -> Members:
    check_gate(change.gate, change.k)
    if members.peer(change.host) is None:
        raise BadInput(f"peer {change.host} is no longer a member: it left, or the other peers took it for dead")
    gate = members.gate(change.gate) or GateRecord(change.gate, change.k, change.protocol, 0)
    if gate.k != change.k:
        raise KMismatch(gate.name, change.k, gate.k)
    if gate.protocol != change.protocol:
        raise BadInput(f"gate {gate.name} runs {gate.protocol}, not {change.protocol}: all its peers must agree")
    new = tuple(SeatRecord(ident, change.host) for ident in change.idents if ident not in gate.idents())
    return with_gate(members, replace(gate, seats=(*gate.seats, *new)), at) if new else members


def risen(members: Members, change: Rise, at: At) -> Members:
    gate = members.gate(change.gate)
    if gate is None or not set(change.idents) & set(gate.idents()):
        return members
    seats = tuple(seat for seat in gate.seats if seat.ident not in change.idents)
    return with_gate(members, replace(gate, seats=seats), at)


def gone(members: Members, change: Go, at: At) -> Members:
    after = replace(members, peers=tuple(peer for peer in members.peers if peer.id not in change.peers))
    for gate in members.gates:
        seats = tuple(seat for seat in gate.seats if seat.host not in change.peers)
        if seats != gate.seats:
            after = with_gate(after, replace(gate, seats=seats), at)
    return after


def with_gate(members: Members, gate: GateRecord, at: At) -> Members:
    """The roster with this gate under a new view, its seats in order; without the gate if it has no seats left."""
    seats = [seat for seat in gate.seats if not seat.virtual]
    others = tuple(other for other in members.gates if other.name != gate.name)
    if not seats:
        return replace(members, gates=others)
    warden = seats[0].host
    missing = gate.k - len(seats)
    virtual = [SeatRecord(identity(warden, SEATS - 1 - i), warden, virtual=True) for i in range(missing)]
    number = next_epoch(members, at)
    gate = replace(gate, view=number, seats=(*seats, *virtual))
    return replace(members, epoch=number, gates=(*others, gate))


def next_epoch(members: Members, at: At) -> int:
    """Seconds since 2024, but always higher than any epoch before, whatever the clock does."""
    epoch = max(at.seconds - EPOCH_ZERO, members.epoch + 1)
    if epoch >= EPOCHS:
        raise BadInput("fence epochs have run out: is the system clock right?")
    return epoch
