"""The state of Non End-to-End nodes: the replica list, replicas, and what a requester knows about each replica."""

from typing import Any

from fairgate.core.declare import Fixed, Id, Moment, Small, record
from fairgate.core.ids import NIL
from fairgate.core.queues import put
from fairgate.core.setup import Setup
from fairgate.protocols.non_e2e.messages import Asked, Gathering, Owner, Request, Skip

RETRY = 2_000_000_000  # ns: the first delay before asking again
CAP = 16  # the longest delay, as a multiple of the first


@record
class Terms:
    """What all nodes of a gate share: parameters from the setup, and which corrections of the paper are enabled."""

    quorum: int
    retry: int
    longest: int
    answers_late: bool
    asks_again: bool
    attempts: bool
    by_number: bool
    earliest_keeps: bool
    from_owner: bool
    replicas_vote: bool
    yield_gathers: bool


def terms_of(kind: Any, setup: Setup, replicas: int) -> Terms:
    """The Terms of a gate. All its nodes share one object, because a run may have a hundred thousand nodes."""
    terms: Terms | None = setup.shared.get(kind)
    if terms is None:
        quorum: int = setup.options.get("quorum", 0) or replicas // 2 + 1
        retry: int = setup.options.get("retry", RETRY)
        terms = Terms(
            quorum,
            retry,
            CAP * retry,
            kind.answers_late,
            kind.asks_again,
            kind.attempts,
            kind.by_number,
            kind.earliest_keeps,
            kind.from_owner,
            kind.replicas_vote,
            kind.yield_gathers,
        )
        setup.shared[kind] = terms
    return terms


# Nodes on the path.


@record
class Entry:
    """An entry of the replica list: (Replica Id, Node Id, Next, Previous, Replica Request Queue).

    There are very many, so it is compact: ids are 32-bit (those of simulated nodes are small), and it has no methods,
    which saves the pointer to a method table.
    """

    replica: Small
    node: Small  # Node Id; with ts and attempt, the request that made the entry
    ts: int
    attempt: int
    previous: Small
    next: Small
    queue: list[Asked] | None = None  # created with its first request, as most entries have none
    after: "Fixed[Entry | None]" = None  # the next entry in the list


def holder_of(entry: Entry) -> Asked:
    """The request that made the entry."""
    return (entry.ts, entry.node, entry.attempt)


def is_of(entry: Entry, m: Request) -> bool:
    return entry.node == m.node and entry.ts == m.ts and entry.attempt == m.attempt


def keep_in(entry: Entry, asked: Asked) -> None:
    if entry.queue is None:
        entry.queue = [asked]
    else:
        put(entry.queue, asked)


def skip(entry: Entry, gone: Id, m: Skip) -> None:
    """Update the pointers of an entry after the neighbour `gone` has left the path."""
    if entry.next == gone:
        entry.next = m.next
    if entry.previous == gone:
        entry.previous = m.previous


def find(entry: Entry | None, replica: int) -> Entry | None:
    """The replica's entry in the list that starts with this one, or None."""
    while entry is not None and entry.replica != replica:
        entry = entry.after
    return entry


def without(entry: Entry | None, replica: int) -> Entry | None:
    """The list that starts with this entry, without the replica's entry."""
    if entry is None or entry.replica == replica:
        return None if entry is None else entry.after
    entry.after = without(entry.after, replica)
    return entry


def in_order(entry: Entry | None) -> list[Entry]:
    """The list that starts with this entry, sorted by Replica Id."""
    found: dict[int, Entry] = {}
    while entry is not None:
        found[entry.replica] = entry
        entry = entry.after
    return [found[replica] for replica in sorted(found)]


@record
class Kept:
    """A copy of a message that was passed on and has not arrived yet."""

    msg: Gathering
    before: Id  # the keeper before this one
    next: Id
    tries: int


# The replica.


@record
class Replica:
    """The state of a replica: its vote and its queue."""

    owner: Owner = ()
    queue: list[Asked] = []
    wanted: bool = False  # was the owner told that an earlier request is waiting?


def merged(one: list[Asked] | None, other: tuple[Asked, ...]) -> list[Asked]:
    """The first queue, with the requests of the second added in order. The first one may be changed in place."""
    if not one:
        return list(other)
    asked: Asked
    for asked in other:
        put(one, asked)
    return one


def is_earlier(a: Owner, b: Owner) -> bool:
    """Was request a made before request b? Attempts are ignored."""
    ts: int = a[0]
    other: int = b[0]
    return ts < other or (ts == other and a[1] < b[1])


# The requester.


@record
class Ask:
    """What a requester knows about one replica."""

    attempt: int
    asked: bool = False  # was a REQUEST with this attempt sent?
    heard: bool = False  # has the replica answered in this round?
    holder: Id = NIL
    vote: bool = False
    wanted: bool = False  # is an earlier request waiting for the vote?


def most_held(asks: list[Ask], me: Id) -> int:
    """The largest number of replicas that, by their answers, have voted for the same other node."""
    counts: dict[int, int] = {}
    ask: Ask
    for ask in asks:
        if ask.heard and not ask.vote and ask.holder != me:
            counts[ask.holder] = counts.get(ask.holder, 0) + 1
    return max(counts.values(), default=0)


@record
class Lease:
    """The lease of a vote that was offered: the node that serves the replica, the end, and unanswered questions."""

    at: Id
    until: Moment
    questions: dict[int, Moment] = {}  # number -> when it was asked
