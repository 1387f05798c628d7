"""What nodes of Non End-to-End keep: the replica list, the role of a replica, and what a requester knows of each."""

from typing import Any

from fairgate.core.ids import NIL
from fairgate.core.message import Key
from fairgate.core.queues import put
from fairgate.core.setup import Options, Setup
from fairgate.protocols.non_e2e.messages import Asked, Request, Skip

RETRY = 2_000_000_000  # ns: the first delay before asking again
CAP = 16  # times that


class Terms:
    """What all nodes of one gate have in common: numbers from the setup, and their class's corrections of the text."""

    __slots__ = (
        "answers_late",
        "asks_again",
        "attempts",
        "by_number",
        "earliest_keeps",
        "longest",
        "quorum",
        "replicas_vote",
        "retry",
        "yield_gathers",
    )

    def __init__(self, kind: Any, options: Options, replicas: int) -> None:
        self.quorum: int = options.get("quorum", 0) or replicas // 2 + 1
        self.retry: int = options.get("retry", RETRY)
        self.longest = CAP * self.retry
        self.answers_late: bool = kind.answers_late
        self.asks_again: bool = kind.asks_again
        self.attempts: bool = kind.attempts
        self.by_number: bool = kind.by_number
        self.earliest_keeps: bool = kind.earliest_keeps
        self.replicas_vote: bool = kind.replicas_vote
        self.yield_gathers: bool = kind.yield_gathers


def terms_of(kind: Any, setup: Setup, replicas: int) -> Terms:
    """One for all nodes of a gate: a run makes a hundred thousand."""
    terms: Terms | None = setup.shared.get(kind)
    if terms is None:
        terms = setup.shared[kind] = Terms(kind, setup.options, replicas)
    return terms


class Entry:
    """Of the replica list, by Replica Id: (Node Id, Replica Request Queue, Next, Previous)."""

    __slots__ = ("after", "attempt", "next", "node", "previous", "queue", "replica", "ts")

    def __init__(self, replica: int, holder: Asked, previous: int, next_hop: int) -> None:
        self.replica = replica
        self.after: Entry | None = None  # in the list
        self.ts, self.node, self.attempt = holder  # Node Id, with the request's number
        self.queue: list[Asked] | None = None  # made for the first one: most entries keep nothing
        self.previous = previous
        self.next = next_hop

    @property
    def holder(self) -> Asked:
        return (self.ts, self.node, self.attempt)

    def key(self) -> Key:
        return (self.holder, tuple(self.queue or ()), self.previous, self.next)


class Replica:
    """The role of a replica: its vote and its queue."""

    __slots__ = ("owner", "queue", "wanted")

    def __init__(self) -> None:
        self.owner: Asked = ()  # whom it has voted for
        self.queue: list[Asked] = []
        self.wanted = False  # does the owner know that an earlier request waits?

    def key(self) -> Key:
        return (self.owner, tuple(self.queue), self.wanted)

    def load(self, key: Key) -> None:
        owner, queue, self.wanted = key
        self.owner = tuple(owner)
        self.queue = [tuple(asked) for asked in queue]


class Ask:
    """What a requester knows of one replica."""

    __slots__ = ("asked", "attempt", "heard", "holder", "vote", "wanted")

    def __init__(self, attempt: int) -> None:
        self.attempt = attempt
        self.asked = False  # is this attempt under way?
        self.heard = False  # did the replica answer in this round?
        self.holder = NIL
        self.vote = False
        self.wanted = False  # by an earlier request

    def key(self) -> Key:
        return (self.attempt, self.asked, self.heard, self.holder, self.vote, self.wanted)


def most_held(asks: list[Ask], me: int) -> int:
    """By what was heard, so many replicas have voted for one other."""
    counts: dict[int, int] = {}
    for ask in asks:
        if ask.heard and not ask.vote and ask.holder != me:
            counts[ask.holder] = counts.get(ask.holder, 0) + 1
    return max(counts.values(), default=0)


def merged(one: list[Asked] | None, other: tuple[Asked, ...]) -> list[Asked]:
    """The first with what the other has besides."""
    if not one:
        return list(other)
    for asked in other:
        put(one, asked)
    return one


def find(entry: Entry | None, replica: int) -> Entry | None:
    """From this one on."""
    while entry is not None and entry.replica != replica:
        entry = entry.after
    return entry


def is_of(entry: Entry, m: Request) -> bool:
    return entry.node == m.node and entry.ts == m.ts and entry.attempt == m.attempt


def keep_in(entry: Entry, asked: Asked) -> None:
    if entry.queue is None:
        entry.queue = [asked]
    else:
        put(entry.queue, asked)


def skip(entry: Entry, gone: int, m: Skip) -> None:
    """Who is next to this node on the way has left it."""
    if entry.next == gone:
        entry.next = m.next
    if entry.previous == gone:
        entry.previous = m.previous


def without(entry: Entry | None, replica: int) -> Entry | None:
    """The list from this one on, and that replica's entry no longer in it."""
    if entry is None or entry.replica == replica:
        return None if entry is None else entry.after
    entry.after = without(entry.after, replica)
    return entry


def in_order(entry: Entry | None) -> list[tuple[int, Entry]]:
    """Those from this one on, by Replica Id."""
    found: dict[int, Entry] = {}
    while entry is not None:
        found[entry.replica] = entry
        entry = entry.after
    return sorted(found.items())


def is_earlier(a: Asked, b: Asked) -> bool:
    """Did the one ask before the other? Whose attempt it is makes no difference."""
    ts: int = a[0]
    other: int = b[0]
    return ts < other or (ts == other and a[1] < b[1])


# What there are many of, built without boxing numbers for `__init__`.


def new_ask(attempt: int) -> Ask:
    ask = Ask.__new__(Ask)
    ask.attempt = attempt
    ask.holder = NIL
    ask.asked = ask.heard = ask.vote = ask.wanted = False
    return ask


def new_entry(m: Request, previous: int, next_hop: int, after: Entry | None) -> Entry:
    entry = Entry.__new__(Entry)
    entry.replica = m.replica
    entry.ts = m.ts
    entry.node = m.node
    entry.attempt = m.attempt
    entry.after = after
    entry.queue = None
    entry.previous = previous
    entry.next = next_hop
    return entry


def load_ask(key: Key) -> Ask:
    ask = Ask(0)
    ask.attempt, ask.asked, ask.heard, ask.holder, ask.vote, ask.wanted = key
    return ask


def load_entry(replica: int, key: Key, after: Entry | None) -> Entry:
    holder, queue, previous, next_hop = key
    entry = Entry(replica, tuple(holder), previous, next_hop)
    entry.queue = [tuple(asked) for asked in queue]
    entry.after = after
    return entry
