"""What peers that agree on rosters say to each other (recovery/views.py), and what a roster is.

A roster is a tuple: (gen, voters, members, lingering, content).

- `gen` is the version that brought these voters.
- A member is (id, joined, standing, last, refused). `joined` is the version that let it in, so an id that is let in
  twice is two members. A standing member may vote. `last` is the number of its last change that was decided, and
  `refused` has the numbers of refused changes, with reasons, which the member may not know of yet.
- `lingering` are excluded members, as (id, joined), whose leases may not be over.
- `content` is what the members agree on. Only the `Book` understands it.
"""

from typing import Protocol

from fairgate.core.declare import Ids, message
from fairgate.core.ids import NIL
from fairgate.core.message import Key, Message

MOST_VOTERS = 7
MOST_CHANGES = 64  # in one message
LONGEST_REASON = 200  # characters of the reason for a refusal

Name = tuple[int, int]  # of a member: its id, and the version that let it in
Ballot = tuple[int, int]  # its round, and who leads by it
Refusal = tuple[int, str]  # number of a change, and why it was refused
Member = tuple[int, int, bool, int, tuple[Refusal, ...]]
Value = tuple[int, tuple[int, ...], tuple[Member, ...], tuple[Name, ...], Key]
Change = tuple[int, Key]  # its number, and what it is

NO_BALLOT: Ballot = (0, NIL)
NO_VALUE: Value = (0, (), (), (), ())


class Refused(ValueError):
    """The Book refuses a change, or a newcomer. Its text is the reason that the asker is given."""


class Book(Protocol):
    """Knows the content of rosters. All methods are pure, and only the peer that leads calls them, except `first`.

    `changed` and `joined` raise Refused, or another ValueError, if they cannot or must not be done.
    """

    def first(self) -> Key:
        """The content of the first roster, with everything about the founders."""

    def changed(self, content: Key, change: Key, peer: int) -> Key:
        """After a change that this peer asked for. It may concern only what belongs to that peer."""

    def joined(self, content: Key, peer: int, about: Key) -> Key:
        """After a newcomer was let in. `about` is what it says about itself; its first seats may be part of that."""

    def excluded(self, content: Key, peer: int) -> Key:
        """After an exclusion: what the peer holds stays taken until it is forgotten."""

    def forgotten(self, content: Key, peer: int) -> Key:
        """After the lease of an excluded peer is surely over."""

    def left(self, content: Key, peer: int) -> Key:
        """After a peer has left, holding nothing."""

    def concerns(self, content: Key, peer: int, change: Key) -> tuple[str, ...]:
        """The names of the gates that get a new view by this peer's change; by its departure, if `change` is ()."""

    def leader_of(self, content: Key, gate: str) -> int:
        """The peer that leads the census of this gate, or NIL."""


class Above(Protocol):
    """What a peer does with the rosters. Each is called at the end of a step, and may call `change` and `busy`."""

    def adopted(self, at: int, value: Value) -> None:
        """This version of the roster is now known here. Versions may be skipped."""

    def applied(self, number: int) -> None:
        """The change with this number is part of the roster that was adopted last."""

    def denied(self, number: int, why: str) -> None:
        """The change with this number was refused, and nothing has changed. Number 0: the request to join."""

    def turned_away(self) -> None:
        """The peer that was asked for admission is not a member itself, or leaves. Ask another one."""

    def excluded(self, why: str) -> None:
        """This peer is no longer a member. It needs a new id to join again."""


def majority(voters: tuple[int, ...]) -> int:
    return len(voters) // 2 + 1


def names(value: Value) -> list[Name]:
    return [member[:2] for member in value[2]]


def ids(value: Value) -> list[int]:
    return [member[0] for member in value[2]]


def check_value(at: int, value: Value) -> None:
    """Raises ValueError unless this can be the roster of version `at`."""
    gen, voters, members, lingering, _ = value
    known = ids(value)
    if not 1 <= gen <= at:
        raise ValueError(f"roster {at} has voters of version {gen}, which must be 1..{at}")
    if not 1 <= len(voters) <= MOST_VOTERS or len(set(voters)) < len(voters) or not set(voters) <= set(known):
        raise ValueError(f"roster {at} has voters {voters}: 1 to {MOST_VOTERS} different members are allowed")
    if len(set(known)) < len(known) or min(known) < 0:
        raise ValueError(f"roster {at} lists a member twice, or one with a negative id")
    if any(not 1 <= joined <= at for _, joined in (*names(value), *lingering)):
        raise ValueError(f"roster {at} has a member that joined in a later version")
    if any(last < 0 for _, _, _, last, _ in members):
        raise ValueError(f"roster {at} has a negative number of a change")


@message()
class Versioned(Message):
    """A message that says which version of the roster its sender knows."""

    at: int


@message("vw.beat")
class Beat(Versioned):
    """I am here. `busy`: gates whose census I lead and that is not over; `suspects`: peers that I cannot reach."""

    number: int
    gen: int
    joined: int
    busy: tuple[str, ...]
    suspects: Ids


@message("vw.ack")
class Ack(Versioned):
    """I have heard this beat. `ok`: and you are a member of what I have accepted. `leader`: who leads, I believe."""

    number: int
    ok: bool
    leader: int


@message("vw.prepare")
class Prepare(Versioned):
    """Accept nothing of a lower ballot, as the successor of this version or later."""

    ballot: Ballot


@message("vw.promise")
class Promise(Versioned):
    """I will not; and this is what I have accepted as the successor, with its ballot."""

    ballot: Ballot
    accepted: Ballot
    value: Value


@message("vw.accept")
class Accept(Versioned):
    """Accept this roster as the successor of version `at`."""

    ballot: Ballot
    value: Value


@message("vw.accepted")
class Accepted(Versioned):
    """I have accepted it. `left`: how long the leases that it takes away may still be valid, as far as I know."""

    ballot: Ballot
    left: int


@message("vw.nack")
class Nack(Versioned):
    """I have promised to follow a higher ballot."""

    promised: Ballot


@message("vw.chosen")
class Chosen(Versioned):
    """Version `at` is this roster."""

    value: Value


@message("vw.behind")
class Behind(Versioned):
    """You know a later version than `at`, which is my last. Tell me."""


@message("vw.ask")
class Ask(Versioned):
    """Make these changes, in the order of their numbers. The sender knows the outcome of all before them."""

    joined: int
    changes: tuple[Change, ...]


@message("vw.leave")
class Leave(Versioned):
    """I have left: I hold nothing any more."""

    joined: int


@message("vw.join")
class Join(Message):
    """A stranger to a member: let me in. `said` is what the Book should know about me."""

    said: Key
    standing: bool


@message("vw.introduce")
class Introduce(Versioned):
    """A member to the voters: let this stranger in."""

    newcomer: int
    said: Key
    standing: bool


@message("vw.no_member")
class NoMember(Message):
    """To a stranger that wants to join: I am not a member, or leave. Ask another peer."""


@message("vw.turned_away")
class TurnedAway(Message):
    """To whoever introduced the newcomer, and from there to the newcomer: it was refused."""

    newcomer: int
    why: str
