"""Who is there and which gates are open: plain data, and every change of it as a pure step.

A gate has *seats*: identities, each hosted by a peer. Whenever they change, the gate comes under a new *view*: a number
above all that were ever given, to any gate, and the seats that count under it. Views are what peers agree on
(recovery/regenerate.py makes the protocol anew under each), so all that is needed of whoever keeps the roster is one
order of changes: on one host a file under a lock (members.py), between hosts the peer that made the cluster.

Two kinds of seats are nobody's, and are hosted by the gate's *warden*, the host of its first seat:

  - a gate of k needs k identities for its tokens to start at, so as many as it lacks are *virtual*;
  - a *ghost* is the seat of a dead peer whose processes are still inside, in `slot` (live/occupancy.py).
"""

from dataclasses import dataclass

import msgspec
from msgspec.structs import replace

from fairgate.core.ids import NIL, SEATS, identity
from fairgate.errors import BadInput, KMismatch

SCHEMA = 1
EPOCH_ZERO = 1_704_067_200  # 2024-01-01, in seconds since 1970
EPOCHS = 1 << 31
LONGEST_NAME = 200
MOST_K = SEATS // 2  # the other half are people's seats


class PidNamespace(msgspec.Struct, frozen=True):
    """Where process numbers mean the same."""

    host: str = ""
    boot: str = ""
    pids: int = 0  # the pid namespace


class PeerRecord(msgspec.Struct, frozen=True):
    id: int
    pid: int
    started: int  # clock ticks, see watch.py
    socket: str  # its address
    uid: int
    since: int  # seconds since 1970, for people
    host: str = ""  # its name, for people


class SeatRecord(msgspec.Struct, frozen=True):
    ident: int
    host: int  # a peer
    virtual: bool = False
    ghost: bool = False
    slot: int = NIL  # where the ghost is, if the protocol has slots


class GateRecord(msgspec.Struct, frozen=True):
    name: str
    k: int
    protocol: str
    view: int  # its number; the fences given under it are above view * 2^32
    seats: tuple[SeatRecord, ...] = ()  # people's first: who is first leads

    def idents(self) -> tuple[int, ...]:
        return tuple([seat.ident for seat in self.seats])


class Members(msgspec.Struct, frozen=True):
    schema: int = SCHEMA
    version: int = 0
    epoch: int = 0  # the highest number that was ever given to a view
    place: PidNamespace = PidNamespace()
    peers: tuple[PeerRecord, ...] = ()
    gates: tuple[GateRecord, ...] = ()

    def gate(self, name: str) -> GateRecord | None:
        return next((gate for gate in self.gates if gate.name == name), None)

    def peer(self, ident: int) -> PeerRecord | None:
        return next((peer for peer in self.peers if peer.id == ident), None)


# The changes, as data, so that they can be sent to whoever keeps the roster.


class Sit(msgspec.Struct, frozen=True, tag=True):
    """New seats of one peer at a gate, which is opened if it is not open."""

    gate: str
    k: int
    protocol: str
    host: int
    idents: tuple[int, ...]


class Rise(msgspec.Struct, frozen=True, tag=True):
    """These seats are given up."""

    gate: str
    idents: tuple[int, ...]


class Renew(msgspec.Struct, frozen=True, tag=True):
    """The same seats under a new view: something was lost between them, or their fences are used up."""

    gate: str


class Go(msgspec.Struct, frozen=True, tag=True):
    """These peers leave, or are dead; their seats in `ghosts` (gate, ident, slot) stay as ghosts."""

    peers: tuple[int, ...]
    ghosts: tuple[tuple[str, int, int], ...] = ()


Change = Sit | Rise | Renew | Go


@dataclass(frozen=True)
class At:
    """A change is made at a time: seconds since 1970."""

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
    check_gate(change)
    if members.peer(change.host) is None:
        raise BadInput(f"peer {change.host} is not a member any more: it left, or was taken for dead")
    gate = members.gate(change.gate) or GateRecord(change.gate, change.k, change.protocol, 0)
    if gate.k != change.k:
        raise KMismatch(gate.name, change.k, gate.k)
    if gate.protocol != change.protocol:
        raise BadInput(f"gate {gate.name} runs {gate.protocol}, and you asked for {change.protocol}")
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
    ghosts = {(gate, ident): slot for gate, ident, slot in change.ghosts}
    for gate in members.gates:
        seats = []
        for seat in gate.seats:
            if seat.host not in change.peers:
                seats.append(seat)
            elif seat.ghost:
                seats.append(seat)  # it gets another host
            elif (gate.name, seat.ident) in ghosts:
                seats.append(replace(seat, ghost=True, slot=ghosts[gate.name, seat.ident]))
        if tuple(seats) != gate.seats or any(seat.host in change.peers for seat in seats):
            after = with_gate(after, replace(gate, seats=tuple(seats)), at)
    return after


def with_gate(members: Members, gate: GateRecord, at: At) -> Members:
    """With this gate, seats put in order, under a new view; without it if nobody is left there."""
    people = [seat for seat in gate.seats if not seat.ghost and not seat.virtual]
    warden = people[0].host if people else NIL
    ghosts = [replace(seat, host=warden) for seat in gate.seats if seat.ghost]
    missing = gate.k - len(people) - len(ghosts) if people else 0
    virtual = [SeatRecord(identity(warden, SEATS - 1 - i), warden, virtual=True) for i in range(missing)]
    others = tuple(other for other in members.gates if other.name != gate.name)
    if not people and not ghosts:
        return replace(members, gates=others)
    number = next_epoch(members, at)
    gate = replace(gate, view=number, seats=(*people, *ghosts, *virtual))
    return replace(members, epoch=number, gates=(*others, gate))


def check_gate(change: Sit) -> None:
    if not (0 < len(change.gate) <= LONGEST_NAME and change.gate.isprintable()):
        raise BadInput(f"cannot call a gate {change.gate!r:.60}: 1 to {LONGEST_NAME} printable characters")
    if change.k < 1:
        raise BadInput(f"gate {change.gate} would let nobody in: k is {change.k}")
    if change.k > MOST_K:
        raise BadInput(f"gate {change.gate} would let {change.k} in: at most {MOST_K} are possible")


def next_epoch(members: Members, at: At) -> int:
    """Seconds since 2024, but always more than any before, whatever the clock does."""
    epoch = max(at.seconds - EPOCH_ZERO, members.epoch + 1)
    if epoch >= EPOCHS:
        raise BadInput("the epochs of fences are used up: is the clock right?")
    return epoch
