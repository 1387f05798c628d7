"""Maekawa, "A sqrt(N) Algorithm for Mutual Exclusion in Decentralized Systems" (1985), on a grid.

Theory of operation. A node asks only the members of its quorum, and any two quorums share a member. As an arbiter, each
node is locked for one request at a time and queues the others by (timestamp, id); the smallest is the best. Acquiring
locks one by one can deadlock. So an arbiter that receives a better request than the one it is locked for sends INQUIRE
to the lock's holder. A requester that has FAILED at any arbiter gives such a lock back (RELINQUISH). A requester that
has not failed keeps it: it will either win or receive a FAILED.

That last guarantee is Sanders' correction (1987). The best waiting request at an arbiter is not told FAILED at first;
it must be told when a better one arrives.

Messages may overtake each other, so each one names the request that it concerns by its timestamp:
  - An INQUIRE that overtakes its LOCKED waits for it. There is at most one INQUIRE per lock, so they cannot be
    confused.
  - A FAILED that was overtaken by its LOCKED is ignored.
  - A LOCKED for a request that is over, the result of a duplicated REQUEST, is answered with RELEASE.

A node is an arbiter for its own requests too. It delivers messages to itself by a plain call within the same step.
So every handler sends last, when its own state is consistent.
"""

from bisect import insort
from math import isqrt

from fairgate.core.about import About
from fairgate.core.declare import Fixed, Ids, message, node
from fairgate.core.ids import NIL
from fairgate.core.message import Message
from fairgate.core.mutex import Mutex
from fairgate.core.setup import Setup


def quorum_of(place: int, members: Ids) -> Ids:
    """The row and the column of this place in the smallest square grid that holds all members, filled row by row.

    Any two quorums intersect. If two nodes share a row, each is in the other's quorum. If not, the row of the upper
    one is not the last row in use, so it is full and contains a member in the column of the lower one.
    """
    side = isqrt(len(members) - 1) + 1
    begin = place - place % side
    row = range(begin, min(begin + side, len(members)))
    return tuple([members[i] for i in sorted({*row, *range(place % side, len(members), side)})])


@message("mk.request")
class Request(Message):
    """REQUEST(ts): the sender asks for the receiver's lock."""

    ts: int


@message("mk.locked")
class Locked(Message):
    """LOCKED(ts): the sender is locked for the receiver's request.

    `clock` makes the receiver's next request later than any the sender has seen.
    """

    ts: int
    clock: int


@message("mk.failed")
class Failed(Message):
    """FAILED(ts): the sender knows a better request than the receiver's."""

    ts: int


@message("mk.inquire")
class Inquire(Message):
    """INQUIRE(ts): the sender wants its lock back, unless the receiver can still win."""

    ts: int


@message("mk.relinquish")
class Relinquish(Message):
    """RELINQUISH(ts): the sender gives the receiver's lock back for now, and stays in its queue."""

    ts: int


@message("mk.release")
class Release(Message):
    """RELEASE(ts): the sender's request is over."""

    ts: int


@node
class Maekawa(Mutex):
    about = About(
        name="maekawa",
        paper="Maekawa 1985, Sanders 1987",
        kind="quorum",
        cost="6(sqrt N-1), about 8(sqrt N-1) under load",
        many=False,
    )
    shown = "clock ts locked failed inquired inside holder inquiring queue"

    clock: int = 0
    # Requester.
    quorum: Fixed[Ids]
    ts: int = NIL  # of the current request
    locked: set[int] = set()  # arbiters that are locked for it
    failed: set[int] = set()  # arbiters that sent FAILED, or whose lock was given back
    inquired: set[int] = set()  # arbiters that want their lock back
    # Arbiter. Requests are (timestamp, id).
    holder: tuple[int, ...] = ()  # the request that it is locked for
    inquiring: bool = False  # was INQUIRE sent to the holder?
    queue: list[tuple[int, ...]] = []  # the best first

    def initialize(self, setup: Setup) -> None:
        self.quorum = quorum_of(setup.place(self.me), setup.members)

    def request_cs(self) -> None:
        self.clock += 1
        self.ts = self.clock
        arbiter: int
        for arbiter in self.quorum:
            self.tell(arbiter, Request(self.ts))

    def release_cs(self) -> None:
        ts: int = self.ts
        self.ts = NIL
        self.locked = set()
        self.inquired = set()
        arbiter: int
        for arbiter in self.quorum:
            self.tell(arbiter, Release(ts))

    def logical_time(self) -> int:
        return self.clock

    def hear_time(self, time: int) -> None:
        self.clock = max(self.clock, time)

    def tell(self, dst: int, msg: Message) -> None:
        if dst == self.me:
            self.on_message(dst, msg)
        else:
            self.out.send(dst, msg)

    # The requester.

    def on_locked(self, arbiter: int, m: Locked) -> None:
        self.clock = max(self.clock, m.clock)
        if m.ts != self.ts:
            self.out.note("locked for a request that is over")
            self.tell(arbiter, Release(m.ts))
            return
        self.locked.add(arbiter)
        self.failed.discard(arbiter)
        if len(self.locked) == len(self.quorum):
            self.enter_cs(NIL, NIL)
        else:
            self.give_back()

    def on_failed(self, arbiter: int, m: Failed) -> None:
        if m.ts != self.ts or arbiter in self.locked:
            self.out.note("failed was overtaken by locked")
            return
        self.failed.add(arbiter)
        self.give_back()

    def on_inquire(self, arbiter: int, m: Inquire) -> None:
        if m.ts != self.ts:
            return  # the RELEASE of that request is the answer
        if arbiter not in self.locked:
            self.out.note("inquire overtook locked")
        self.inquired.add(arbiter)
        self.give_back()

    def give_back(self) -> None:
        """If this request has failed anywhere, it may not win soon: relinquish the locks that arbiters want back."""
        if not self.failed:
            return
        arbiter: int
        for arbiter in self.quorum:
            if arbiter in self.inquired and arbiter in self.locked:
                self.locked.discard(arbiter)
                self.inquired.discard(arbiter)
                self.failed.add(arbiter)
                self.tell(arbiter, Relinquish(self.ts))

    # The arbiter.

    def on_request(self, src: int, m: Request) -> None:
        assert m.ts < 1 << 62, "no clock gets there, and one beyond it would overflow"
        self.clock = max(self.clock, m.ts)
        if not self.holder:
            self.lock(m.ts, src)
        elif (m.ts, src) < self.best():
            self.overtake(m.ts, src)
        else:
            insort(self.queue, (m.ts, src))
            self.tell(src, Failed(m.ts))

    def best(self) -> tuple[int, ...]:
        """The best request known to this arbiter."""
        if self.queue and self.queue[0] < self.holder:
            return self.queue[0]
        return self.holder

    def overtake(self, ts: int, src: int) -> None:
        """Queue a request that is better than all known ones. It becomes the first, and is not told FAILED."""
        was_best: tuple[int, ...] = self.best()
        insort(self.queue, (ts, src))
        if was_best != self.holder:
            self.out.note("a waiting best request was overtaken")
            self.tell(was_best[1], Failed(was_best[0]))
        if not self.inquiring:
            self.inquiring = True
            self.tell(self.holder[1], Inquire(self.holder[0]))

    def on_relinquish(self, src: int, m: Relinquish) -> None:
        assert self.holder == (m.ts, src), "only the holder gives the lock back"
        insort(self.queue, self.holder)
        self.lock_best()

    def on_release_message(self, src: int, m: Release) -> None:
        assert self.holder == (m.ts, src), "only the holder releases the lock"
        self.holder = ()
        if self.queue:
            self.lock_best()

    def lock_best(self) -> None:
        ts, src = self.queue.pop(0)
        self.lock(ts, src)

    def lock(self, ts: int, src: int) -> None:
        self.holder = (ts, src)
        self.inquiring = False
        self.tell(src, Locked(ts, self.clock))
