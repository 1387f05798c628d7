"""BV95: Bulgannawar and Vaidya's k-mutual exclusion, as far as Fair-k's paper describes it.

Theory of operation. There are k tokens, and for each a path-reversal tree (see naimi_trehel.py): `parent[t]` leads
towards token t. A node that holds an idle token uses it. Any other node picks one tree by a heuristic and requests that
tree's token only, which is what makes the algorithm unfair. A node that waits for token t, or is inside with it, is a
sink of tree t: it stores requests that reach it in `kept`. The token carries a `queue` of known waiters. When a node
passes the token on, it merges the two. Labels: papers/bv95.md.

The heuristics and the cache policies are ours, because we do not have the original paper. Option `tree` selects the
tree to ask:
  - random: any tree, with equal probability;
  - round_robin: the trees in turn, starting with the node's own;
  - last_used: the tree whose token this node used last;
  - most_recent: the tree from which this node received a message most recently;
  - stalest: the tree from which this node has received no message for the longest time;
  - static: always the node's own tree, which is determined by its id;
  - queue_hint: the tree with the shortest estimated queue: its length when the token last left this node, plus one
    for every request forwarded since; ties are broken at random.
Option `cache` selects where kept requests go in the token's queue:
  - append: at the end, in order of arrival;
  - none: a node keeps one request only, and forwards later ones to that requester: plain path reversal;
  - prepend: at the front, in order of arrival, so newcomers may overtake;
  - sorted: by stamp, a Lamport clock that both messages carry; ties in order of arrival. (Breaking ties by id would
    reorder the queue in a census, where no node has heard from any other and all stamps are equal.)

Why it is live. For tree t, draw one arrow from each node: to its `parent[t]`, or, if it waits for token t, to where its
request is. That is the node to which the request is in flight, the node that keeps it, or the node that holds (or is
being sent) the token whose queue contains it. The arrows form a tree whose root holds the token or is being sent it,
and every step preserves this: forwarding a request puts the forwarder below the requester, and releasing puts the
releaser below a node in the queue, or, if it asks again at once, below the next holder. So no request travels in a
circle.
"""

from operator import itemgetter
from typing import Any

from fairgate.core.about import About
from fairgate.core.declare import Fixed, Id, Option, message, node, one_of
from fairgate.core.ids import NIL, peer_of, seat_of
from fairgate.core.message import Message
from fairgate.core.mutex import Mutex
from fairgate.core.setup import Setup

Waiting = tuple[int, int]  # (stamp, id)
STAMP = itemgetter(0)


@message("bv.request")
class Request(Message):
    """Node r wants token t; `stamp` is r's clock at the time of the request."""

    t: int
    r: Id
    stamp: int


@message("bv.token", tokens=1)
class Token(Message):
    """Token t, the fence of the last entry with it, the sender's clock, and the nodes waiting behind the receiver."""

    t: int
    fence: int
    stamp: int
    queue: tuple[Waiting, ...]

    def slots(self) -> tuple[int, ...]:
        return (self.t,)


@node
class BV95(Mutex):
    about = About(
        name="bv95",
        paper="FK [2] Bulgannawar-Vaidya 1995",
        kind="token",
        cost="O(log N), 0 for an idle holder",
        slots=True,
    )

    tree: Option[str] = one_of("random", "round_robin", "last_used", "most_recent", "stalest", "static", "queue_hint")
    cache: Option[str] = one_of("append", "none", "prepend", "sorted")
    k: Fixed[int]
    parent: list[Id]  # parent[t] leads towards token t
    token_present: bool
    slot: int  # of its token; never two, because a node that has a token does not request another
    fence: int
    queue: tuple[Waiting, ...] = ()  # as received with the token
    kept: list[Waiting] = []
    clock: int = 0  # advances only if the cache is sorted; otherwise it would make equal states differ
    order: list[int]  # trees, most recently touched last
    hint: list[int]  # by tree, an estimate of its queue's length

    def initialize(self, setup: Setup) -> None:
        self.k = setup.k
        self.parent = list(setup.holders)  # where each token starts
        self.slot = setup.holders.get(self.me, NIL)
        self.token_present = self.slot != NIL
        self.fence = setup.first_fence if self.token_present else NIL
        if self.token_present:
            self.parent[self.slot] = NIL
        own = (peer_of(self.me) + seat_of(self.me)) % setup.k
        self.order = [(own + i) % setup.k for i in range(setup.k)]
        self.hint = [0] * setup.k

    def request_cs(self) -> None:
        if self.token_present:
            self.take_token()
        else:
            self.tick(0)
            t: int = self.pick()  # BV:RQ1
            self.out.send(self.parent[t], Request(t, self.me, self.clock))  # BV:RQ2
            self.parent[t] = NIL  # BV:RQ3

    def release_cs(self) -> None:
        waiting: tuple[Waiting, ...] = self.merged()  # BV:RL1
        if waiting:
            if self.parent[self.slot] == NIL:
                # The head and the tail both get the token after this node, so either would preserve the tree. The tail
                # remains a sink for longest: a request sent there stays there, while one sent to the head would have
                # to follow the token.
                self.parent[self.slot] = waiting[len(waiting) - 1][1]  # BV:RL2
            self.send_token(waiting[0][1], waiting[1:])  # BV:RL3

    def again_cs(self) -> None:
        """Put the new request at the end of the token's queue, instead of sending it as a message of its own.

        Its place is the end, because its stamp is higher than all others in the queue. This node stays a sink: it
        waits, and its request is where the token is.
        """
        waiting: tuple[Waiting, ...] = self.merged()
        if waiting and self.k == 1 and self.cache in ("append", "sorted"):
            self.tick(0)  # or it would tie with a request that the last holder sent after the token
            self.send_token(waiting[0][1], (*waiting[1:], (self.clock, self.me)))  # BV:AG1
        else:
            Mutex.again_cs(self)

    def merged(self) -> tuple[Waiting, ...]:
        """The token's queue and the kept requests, merged by the cache policy."""
        kept: tuple[Waiting, ...] = tuple(self.kept)
        if self.cache == "prepend":
            return kept + self.queue
        if self.cache == "sorted":
            return tuple(sorted(self.queue + kept, key=STAMP))
        return self.queue + kept

    def on_request(self, m: Request) -> None:
        self.tick(m.stamp)
        self.heard(m.t)
        if self.parent[m.t] != NIL:
            self.out.send(self.parent[m.t], m)  # BV:PR1
            self.parent[m.t] = m.r  # BV:PR2
            if self.tree == "queue_hint":
                self.hint[m.t] += 1
        elif not self.requesting_cs:
            self.out.note("an idle token was handed over")
            self.parent[m.t] = m.r
            self.send_token(m.r, ())  # BV:PR3
        else:
            self.keep(m)  # BV:PR4

    def keep(self, m: Request) -> None:
        self.kept.append((m.stamp, m.r))
        if self.cache == "none":
            self.parent[m.t] = m.r  # BV:PR5: it keeps one request only, so it is no longer a sink

    def on_token(self, m: Token) -> None:
        self.tick(m.stamp)
        self.heard(m.t)
        self.token_present = True  # BV:PT1
        self.slot = m.t
        self.fence = m.fence
        self.queue = m.queue
        if self.queue and self.kept:
            self.out.note("a token's queue met kept requests")
        self.take_token()

    def take_token(self) -> None:
        """Enter with the token that is here. Each entry raises the fence by one."""
        self.fence += 1
        if self.tree == "last_used":
            self.touch(self.slot)
        self.enter_cs(self.slot, self.fence)

    def send_token(self, r: Id, rest: tuple[Waiting, ...]) -> None:
        assert self.token_present, "only a node that has the token sends it"
        self.tick(0)
        self.out.send(r, Token(self.slot, self.fence, self.clock, rest))
        if self.tree == "queue_hint":
            self.hint[self.slot] = len(rest) + 1
        self.token_present = False
        self.slot = NIL
        self.fence = NIL
        self.queue = ()
        self.kept = []

    def tick(self, stamp: int) -> None:
        """Advance the Lamport clock past the given stamp."""
        if self.cache == "sorted":
            self.clock = max(self.clock, stamp) + 1

    # The heuristics. Most of them use only `order`, and differ in which events touch a tree.

    def pick(self) -> int:
        if self.k == 1:
            return 0  # for a live peer, a random choice costs as much as a message
        if self.tree == "random":
            return self.out.choose(self.k)
        if self.tree == "queue_hint":
            return self.shortest()
        if self.tree in ("last_used", "most_recent"):
            return self.order[self.k - 1]
        t: int = self.order[0]
        if self.tree == "round_robin":
            self.touch(t)
        return t

    def shortest(self) -> int:
        least = min(self.hint)
        trees: list[int] = [t for t, length in enumerate(self.hint) if length == least]
        return trees[self.out.choose(len(trees))]

    def heard(self, t: int) -> None:
        if self.tree in ("most_recent", "stalest"):
            self.touch(t)

    def touch(self, t: int) -> None:
        self.order.remove(t)
        self.order.append(t)

    def alone(self) -> bool:
        """With several tokens, others may be waiting for a token that is not here."""
        return self.k == 1 and self.token_present and not self.queue and not self.kept

    def retaken(self, times: int) -> None:
        self.fence += times

    def slots(self) -> tuple[int, ...]:
        return (self.slot,) if self.token_present else ()

    def show(self) -> dict[str, Any]:
        return {
            "parent": tuple(self.parent),
            "token": self.slot if self.token_present else None,
            "inside": self.inside,
            "queue": tuple([r for _, r in self.queue]),
            "kept": tuple([r for _, r in self.kept]),
        }
