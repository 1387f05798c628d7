"""What the peers of a cluster agree on: who they are, which gates are open, and who has seats at them.

All of it is plain data, and every change is a pure function. The peers agree on versions of it (views.py). Whoever
leads them applies the changes through a `RosterBook`, and the result travels as a whole.

**Seats.** A gate has *seats*: identities (peer, 0), (peer, 1) and so on, of which the roster keeps a count per peer.
Whenever its seats change, the gate gets a new *view*, with a number higher than that of any earlier view of any gate. A
census rebuilds the protocol under each view (regenerate.py).

**Virtual seats.** A gate with k permits needs k identities for its tokens to start at. Those that it lacks are virtual:
they belong to no request, and are hosted by the gate's *warden*, the first peer that has seats.

**Ghosts.** The seats of an excluded peer become ghosts. It may still be inside until its lease is over, so a census
leaves the slots that it cannot account for to the ghosts. When the peer is forgotten, its ghosts go, and those slots
are free. A gate lives on as long as it has seats or ghosts. Then its record goes, and nothing but `Members.epoch` is
left of it: if it comes back, its view has a higher number than any that it ever had.
"""

from collections.abc import Iterable
from functools import cached_property
from typing import Any

import msgspec
from msgspec.structs import replace

from fairgate.arguments import check_gate, is_whole
from fairgate.core.ids import ID_LIMIT, NIL, SEAT_BITS, SEATS, identity
from fairgate.core.message import Key, as_tuples
from fairgate.errors import BadInput, KMismatch

PEERS = ID_LIMIT >> SEAT_BITS  # ids of peers are random numbers below this; 0 is never used
EPOCH_ZERO = 1_704_067_200  # 2024-01-01, in seconds since 1970
EPOCHS = 1 << 31
LATEST_CLOCK = EPOCHS // 16 * 15  # in 2087; a clock that shows more is wrong
MOST_REQUESTS = SEATS // 2  # of one peer at a time; virtual seats are numbered from the other end
MOST_BYTES = 1 << 18  # of a roster: several must fit a frame
REMEMBERED = 8  # peers that were excluded lately, for people


class PeerRecord(msgspec.Struct, frozen=True, array_like=True):
    """A peer. Everything but the id and the address is for people and for the access rules."""

    id: int
    address: str
    principal: str  # what it proved to be when it joined: nobody else may have its id
    pid: int = 0
    uid: int = 0
    host: str = ""  # its host's name
    since: int = 0  # seconds since 1970
    standing: bool = False  # it may vote
    state: str = ""  # the same after a restart, if it saves its state: a digest of where

    def __post_init__(self) -> None:
        if not self.principal:
            raise BadInput(f"peer {self.id} has no principal: an older version of fairgate runs there, so restart it")


class GateRecord(msgspec.Struct, frozen=True, array_like=True):
    name: str
    k: int
    protocol: str
    view: int  # its number; the fences given under it are above view * 2^32
    hosts: tuple[tuple[int, int], ...] = ()  # peers and their numbers of seats; the first is the warden
    ghosts: tuple[tuple[int, int], ...] = ()  # the same, of excluded peers

    def warden(self) -> int:
        return self.hosts[0][0] if self.hosts else NIL

    def seats(self, peer: int) -> int:
        return dict(self.hosts).get(peer, 0)

    def virtual(self) -> int:
        return max(self.k - sum([seats for _, seats in self.hosts]), 0) if self.hosts else 0

    def idents(self) -> tuple[int, ...]:
        """All seats. Those for requests come first, virtual ones last; the first of all leads the census."""
        own = [identity(peer, seat) for peer, seats in self.hosts for seat in range(seats)]
        return (*own, *[identity(self.warden(), SEATS - 1 - i) for i in range(self.virtual())])

    def ghost_idents(self) -> tuple[int, ...]:
        """The seats of the ghosts; no more of one peer than it could have permits."""
        return tuple([identity(peer, seat) for peer, seats in self.ghosts for seat in range(min(seats, self.k))])


class Members(msgspec.Struct, frozen=True, array_like=True, dict=True):
    """The roster. `cluster`, `lease` and `drift` are fixed when the cluster is created."""

    cluster: str = ""  # a random id, which two clusters with the same name do not share
    lease: int = 0  # ns
    drift: int = 0  # ppm, by which two clocks may differ
    epoch: int = 0  # the highest view number used so far
    peers: tuple[PeerRecord, ...] = ()
    gates: tuple[GateRecord, ...] = ()
    excluded: tuple[PeerRecord, ...] = ()  # lately, the latest last

    @cached_property
    def by_name(self) -> dict[str, GateRecord]:
        return {gate.name: gate for gate in self.gates}

    def gate(self, name: str) -> GateRecord | None:
        return self.by_name.get(name)

    def peer(self, ident: int) -> PeerRecord | None:
        return next((peer for peer in self.peers if peer.id == ident), None)


NOBODY = Members()

# The changes, as data, so that they can be sent to the leader. They concern seats of the peer that asks.


class Sit(msgspec.Struct, frozen=True, array_like=True, tag="sit"):
    """Sets the number of the peer's seats at a gate, and opens the gate if necessary."""

    gate: str
    k: int
    protocol: str
    seats: int


class Rise(msgspec.Struct, frozen=True, array_like=True, tag="rise"):
    """Gives up all seats of the peer at this gate."""

    gate: str


class Renew(msgspec.Struct, frozen=True, array_like=True, tag="renew"):
    """Makes a new view with the same seats: messages between them were lost, or their fences are running out."""

    gate: str


Change = Sit | Rise | Renew


class Newcomer(msgspec.Struct, frozen=True, array_like=True):
    """A peer that joins, and the seats that it wants from the beginning."""

    peer: PeerRecord
    seats: tuple[Sit, ...] = ()


def as_key(thing: msgspec.Struct) -> Key:
    key: Key = as_tuples(msgspec.to_builtins(thing))
    return key


def members_of(content: Key) -> Members:
    return msgspec.convert(content, Members)


def changed(members: Members, change: Change, peer: int, seconds: int) -> Members:
    """The roster after a change that `peer` asked for. BadInput or KMismatch if it is refused.

    `seconds` is the time since 1970.
    """
    if members.peer(peer) is None:
        raise BadInput(f"peer {peer} is no longer a member: it left, or the other peers took it for dead")
    gate = members.gate(change.gate)
    if isinstance(change, Sit):
        return sat_down(members, change, peer, seconds)
    if gate is None or not gate.seats(peer):
        return members
    if isinstance(change, Rise):
        gate = replace(gate, hosts=without(gate.hosts, peer))
    return with_gate(members, gate, seconds)


def sat_down(members: Members, change: Sit, peer: int, seconds: int) -> Members:
    check_gate(change.gate, change.k)
    if not is_whole(change.seats) or not 1 <= change.seats <= MOST_REQUESTS:
        raise BadInput(f"gate {change.gate}: a peer can have 1 to {MOST_REQUESTS} seats, not {change.seats}")
    gate = members.gate(change.gate) or GateRecord(change.gate, change.k, change.protocol, 0)
    if gate.k != change.k:
        raise KMismatch(gate.name, change.k, gate.k)
    if gate.protocol != change.protocol:
        raise BadInput(f"gate {gate.name} runs {gate.protocol}, not {change.protocol}: all its peers must agree")
    if gate.seats(peer) == change.seats:
        return members
    there = [host for host, _ in gate.hosts]
    hosts = gate.hosts if peer in there else (*gate.hosts, (peer, 0))
    hosts = tuple([(host, change.seats if host == peer else seats) for host, seats in hosts])
    return with_gate(members, replace(gate, hosts=hosts), seconds)


def gone(members: Members, peer: int, seconds: int, excluded: bool) -> Members:
    """The roster without a peer that left, or was excluded."""
    found = members.peer(peer)
    after = replace(members, peers=tuple([one for one in members.peers if one.id != peer]))
    if excluded and found is not None:
        after = replace(after, excluded=(*after.excluded, found)[-REMEMBERED:])
    for gate in members.gates:
        if seats := gate.seats(peer):
            ghosts = (*gate.ghosts, (peer, seats)) if excluded else gate.ghosts
            after = with_gate(after, replace(gate, hosts=without(gate.hosts, peer), ghosts=ghosts), seconds)
    return after


def forgotten(members: Members, peer: int, seconds: int) -> Members:
    """The roster without the ghosts of a peer, whose lease is over."""
    for gate in members.gates:
        if peer in dict(gate.ghosts):
            members = with_gate(members, replace(gate, ghosts=without(gate.ghosts, peer)), seconds)
    return members


def with_gate(members: Members, gate: GateRecord, seconds: int) -> Members:
    """The roster with this gate under a new view; without the gate if it has neither seats nor ghosts."""
    others = tuple([other for other in members.gates if other.name != gate.name])
    if not gate.hosts and not gate.ghosts:
        return replace(members, gates=others)
    number = next_epoch(members, seconds)
    return replace(members, epoch=number, gates=(*others, replace(gate, view=number)))


def without(seats: Iterable[tuple[int, int]], peer: int) -> tuple[tuple[int, int], ...]:
    return tuple([one for one in seats if one[0] != peer])


def next_epoch(members: Members, seconds: int) -> int:
    """Seconds since 2024, but always higher than any epoch before, whatever the clock does.

    A clock that is far ahead is not believed: the epochs would run out, and the gates could not go on."""
    by_clock = seconds - EPOCH_ZERO
    epoch = max(by_clock if by_clock < LATEST_CLOCK else 0, members.epoch + 1)
    if epoch >= EPOCHS:
        raise BadInput("fence epochs have run out: create the cluster anew, under another name")
    return epoch


def check_size(content: Key) -> Key:
    """BadInput if the roster would not fit a frame."""
    size = len(msgspec.msgpack.encode(content))
    if size > MOST_BYTES:
        raise BadInput(f"the roster would have {size} bytes, more than {MOST_BYTES}: use fewer gates or peers")
    return content


class RosterBook:
    """What the leader of the views knows about the content of rosters (see `Book` in agreed.py).

    A method may raise BadInput: the change is refused with its message. The driver sets `seconds`, the time since 1970,
    before every step.
    """

    def __init__(self, first: Members = NOBODY) -> None:
        self.start = first
        self.seconds = 0
        self.known = (as_key(first), first)  # the content that was used last, decoded

    def members(self, content: Key) -> Members:
        if self.known[0] is not content:
            self.known = (content, members_of(content))
        return self.known[1]

    def content(self, members: Members) -> Key:
        self.known = (as_key(members), members)
        return self.known[0]

    def first(self) -> Key:
        return as_key(self.start)

    def changed(self, content: Key, change: Key, peer: int) -> Key:
        what = converted(change, Change)
        return check_size(as_key(changed(self.members(content), what, peer, self.seconds)))

    def joined(self, content: Key, peer: int, about: Key) -> Key:
        members = self.members(content)
        new = converted(about, Newcomer)
        if new.peer.id != peer or members.peer(peer) is not None:
            raise BadInput(f"peer {peer} cannot join as peer {new.peer.id}")
        members = replace(members, peers=(*members.peers, new.peer))
        for sit in new.seats:
            members = changed(members, sit, peer, self.seconds)
        return check_size(as_key(members))

    def excluded(self, content: Key, peer: int) -> Key:
        return self.content(gone(self.members(content), peer, self.seconds, excluded=True))

    def forgotten(self, content: Key, peer: int) -> Key:
        return self.content(forgotten(self.members(content), peer, self.seconds))

    def left(self, content: Key, peer: int) -> Key:
        return self.content(gone(self.members(content), peer, self.seconds, excluded=False))

    def concerns(self, content: Key, peer: int, change: Key) -> tuple[str, ...]:
        """A Renew does not wait for the present census: that may never end, because messages of it were lost."""
        if change:
            what = converted(change, Change)
            return () if isinstance(what, Renew) else (what.gate,)
        return tuple([gate.name for gate in self.members(content).gates if gate.seats(peer)])

    def leader_of(self, content: Key, gate: str) -> int:
        found = self.members(content).gate(gate)
        return NIL if found is None else found.warden()


def converted(key: Key, kind: Any) -> Any:
    try:
        return msgspec.convert(key, kind)
    except msgspec.ValidationError as wrong:
        raise BadInput(f"{key!r:.60} is not valid: {wrong}") from wrong
