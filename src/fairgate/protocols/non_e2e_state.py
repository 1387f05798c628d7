"""What nodes of Non End-to-End keep: the replica list, the role of a replica, and what a requester knows of each."""

from fairgate.core.ids import NIL
from fairgate.core.message import Key
from fairgate.core.queues import put
from fairgate.protocols.non_e2e_messages import Asked


class Entry:
    """Of the replica list, by Replica Id: (Node Id, Replica Request Queue, Next, Previous)."""

    __slots__ = ("holder", "next", "previous", "queue")

    def __init__(self, holder: Asked, previous: int, next_hop: int) -> None:
        self.holder = holder  # Node Id, with the request's number
        self.queue: list[Asked] | None = None  # made for the first one: most entries keep nothing
        self.previous = previous
        self.next = next_hop

    def put(self, asked: Asked) -> None:
        if self.queue is None:
            self.queue = [asked]
        else:
            put(self.queue, asked)

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


def merged(one: list[Asked] | None, other: tuple[Asked, ...]) -> list[Asked]:
    """The first with what the other has besides."""
    if not one:
        return list(other)
    for asked in other:
        put(one, asked)
    return one


# What there are many of, built without boxing numbers for `__init__`.


def new_ask(attempt: int) -> Ask:
    ask = Ask.__new__(Ask)
    ask.attempt = attempt
    ask.holder = NIL
    ask.asked = ask.heard = ask.vote = ask.wanted = False
    return ask


def new_entry(holder: Asked, previous: int, next_hop: int) -> Entry:
    entry = Entry.__new__(Entry)
    entry.holder = holder
    entry.queue = None
    entry.previous = previous
    entry.next = next_hop
    return entry


def load_ask(key: Key) -> Ask:
    ask = Ask(0)
    ask.attempt, ask.asked, ask.heard, ask.holder, ask.vote, ask.wanted = key
    return ask


def load_entry(key: Key) -> Entry:
    holder, queue, previous, next_hop = key
    entry = Entry(tuple(holder), previous, next_hop)
    entry.queue = [tuple(asked) for asked in queue]
    return entry
