"""Maekawa, "A sqrt(N) Algorithm for Mutual Exclusion in Decentralized Systems" (1985), on a grid.

Theory of operation. Every node asks only its quorum, and any two quorums share a member. As an arbiter
each node is locked for one request at a time and keeps the others in order of (timestamp, id). Locks
taken piecemeal can wait for each other in a circle, so an arbiter that gets a better request than the
one it is locked for INQUIREs there, and a requester that has FAILED anywhere gives such a lock back
(RELINQUISH). One that has not failed keeps it: either it will win, or it will learn that it fails.

That last promise is Sanders' correction (1987): a request that was the best to wait at an arbiter, and
was therefore not told FAILED, must be told when a better one comes.

Messages may overtake each other, so each names the request that it concerns by its timestamp:
  - an INQUIRE that overtakes its LOCKED waits for it; there is one at most for each lock, so it is
    never a matter of which;
  - a FAILED that its LOCKED has overtaken is void;
  - a LOCKED for a request that is over, which comes of a REQUEST heard twice, is answered by RELEASE.

A node is an arbiter of its own requests too. It tells itself by a plain call inside the same step; so
every handler tells last, when its own state is whole.
"""

from bisect import insort
from math import isqrt

from fairgate.core.about import About
from fairgate.core.declare import Fixed, Ids, message, node
from fairgate.core.ids import NIL
from fairgate.core.message import Message
from fairgate.core.mutex import Mutex
from fairgate.core.setup import Setup


def quorum_of(me: int, members: Ids) -> Ids:
    """The row and the column of `me` in the smallest square grid that holds all members, filled row by row.

    Any two quorums meet. If two nodes share a row, each is in the quorum of the other. If not, the upper
    one's row is not the last row in use, hence full: it has a member in the lower one's column.
    """
    side = isqrt(len(members) - 1) + 1
    place = members.index(me)
    return tuple([j for i, j in enumerate(members) if i // side == place // side or i % side == place % side])


@message("mk.request")
class Request(Message):
    """REQUEST(ts): the sender asks for your lock."""

    ts: int


@message("mk.locked")
class Locked(Message):
    """LOCKED(ts): the sender is locked for your request. Its clock makes your next one later than all it has seen."""

    ts: int
    clock: int


@message("mk.failed")
class Failed(Message):
    """FAILED(ts): a better request than yours is known at the sender."""

    ts: int


@message("mk.inquire")
class Inquire(Message):
    """INQUIRE(ts): can you still win with the sender's lock?"""

    ts: int


@message("mk.relinquish")
class Relinquish(Message):
    """RELINQUISH(ts): the sender gives your lock back for now, and stays in your queue."""

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
    # The requester.
    quorum: Fixed[Ids]
    ts: int = NIL  # of the request under way
    locked: set[int] = set()  # arbiters that are locked for it
    failed: set[int] = set()  # arbiters that are not, and said so
    inquired: set[int] = set()  # arbiters that want their lock back
    # The arbiter. Requests are (timestamp, id).
    holder: tuple[int, ...] = ()  # the request that it is locked for
    inquiring: bool = False  # was the holder asked?
    queue: list[tuple[int, ...]] = []  # the best first

    def initialize(self, setup: Setup) -> None:
        self.quorum = quorum_of(self.me, setup.members)

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
            return  # it has the RELEASE for an answer
        if arbiter not in self.locked:
            self.out.note("inquire overtook locked")
        self.inquired.add(arbiter)
        self.give_back()

    def give_back(self) -> None:
        """Locks that are wanted elsewhere go back, if this request has failed somewhere and may not win soon."""
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
        self.clock = max(self.clock, m.ts)
        if not self.holder:
            self.lock(m.ts, src)
        elif (m.ts, src) < self.best():
            self.overtake(m.ts, src)
        else:
            insort(self.queue, (m.ts, src))
            self.tell(src, Failed(m.ts))

    def best(self) -> tuple[int, ...]:
        """The best request known here."""
        if self.queue and self.queue[0] < self.holder:
            return self.queue[0]
        return self.holder

    def overtake(self, ts: int, src: int) -> None:
        """A request comes that is better than all known: it waits as the first, and gets no FAILED."""
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
