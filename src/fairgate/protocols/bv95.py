"""BV95: Bulgannawar and Vaidya's k-mutual exclusion, as far as Fair-k's paper describes it.

Theory of operation. There are k tokens and k trees, one a token, each a path-reversal tree of its own
(see naimi_trehel.py): `parent[t]` leads towards token t. A node with an idle token uses it; another picks
one tree by a heuristic and asks there, and there only, which is what makes the algorithm unfair. A node
that waits for token t, or is inside with it, is a sink of tree t: requests that reach it are `kept`. The
token itself carries the `queue` of those known to wait. When it leaves, the two are merged. Labels: papers/bv95.md.

The heuristics and the caching are ours: the original's are not in our papers. Option `tree`:
  - random: any tree, each as likely;
  - round_robin: every node asks the trees in turn, beginning with its own;
  - last_used: the tree whose token this node was inside with last;
  - most_recent: the tree from which this node had a message last;
  - stalest: the tree from which this node has had no message for the longest time;
  - static: always the node's own tree, which its id decides;
  - queue_hint: the tree with the shortest queue when its token left this node last, counting one more for
    every request passed on since; equals are drawn from.
Option `cache`, where kept requests go in the token's queue:
  - append: behind it, in the order they came;
  - none: nothing is kept but one `next`, later requests are sent after it: plain path reversal;
  - prepend: before it, in the order they came, so that newcomers may overtake;
  - sorted: all by stamp, a Lamport clock that both messages carry; equals in the order they came. (By id the
    queue would lose its order in a census, where nobody has heard of anybody and all stamps are equal.)

Why it is live. Draw an arrow from each node to its `parent[t]`, or, if it waits, to where its request is:
the node it flies to, the node that keeps it, or the node that has or is sent the token in whose queue it
stands. That is one arrow a node, and a tree whose root has the token or is sent it; every step keeps it one:
forwarding hangs the forwarder under the requester, and releasing hangs the releaser under one who waits in
the queue. So no request goes round in a circle.
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
    """r wants token t; stamp is r's clock when it asked."""

    t: int
    r: Id
    stamp: int


@message("bv.token", tokens=1)
class Token(Message):
    """Token t, the last fence it gave, the sender's clock, and who comes after you."""

    t: int
    fence: int
    stamp: int
    queue: tuple[Waiting, ...]


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
    slot: int  # never two: a node that has a token asks for none
    fence: int
    queue: tuple[Waiting, ...] = ()  # as it came with the token
    kept: list[Waiting] = []
    clock: int = 0  # runs only where stamps are read: elsewhere it would tell equal states apart
    order: list[int]  # trees, the latest touched last
    hint: list[int]

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
                # Head or tail: both get the token after this node, so either keeps the tree one. The tail is a
                # sink for longest: what is sent there stays there, where by the heads it would run after the token.
                self.parent[self.slot] = waiting[len(waiting) - 1][1]  # BV:RL2
            self.send_token(waiting[0][1], waiting[1:])  # BV:RL3

    def merged(self) -> tuple[Waiting, ...]:
        """The token's queue with the kept requests in their places."""
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
            self.parent[m.t] = m.r  # BV:PR5: no sink any more, there is room for one

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
        """Enter with the token that is here: each entry is one fence further."""
        self.fence += 1
        if self.tree == "last_used":
            self.touch(self.slot)
        self.enter_cs(self.slot, self.fence)

    def send_token(self, r: Id, rest: tuple[Waiting, ...]) -> None:
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
        """Lamport's clock: past all that was seen."""
        if self.cache == "sorted":
            self.clock = max(self.clock, stamp) + 1

    # Which tree to ask. `order` is all that most heuristics need: they differ in what touches a tree.

    def pick(self) -> int:
        if self.k == 1:
            return 0  # chance costs a live peer as much as a message
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
        """With more tokens than one, others may wait for those."""
        return self.k == 1 and self.token_present and not self.queue and not self.kept

    def retaken(self, times: int) -> None:
        self.fence += times

    def tokens(self) -> int:
        return int(self.token_present)

    def show(self) -> dict[str, Any]:
        return {
            "parent": tuple(self.parent),
            "token": self.slot if self.token_present else None,
            "inside": self.inside,
            "queue": tuple([r for _, r in self.queue]),
            "kept": tuple([r for _, r in self.kept]),
        }
