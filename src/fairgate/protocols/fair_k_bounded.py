"""Fair-k with a bound on how often an idle holder overtakes. Lines, reasons and the bound: papers/fair_k.md, "Bounded".

Theory of operation. In Fair-k whoever has an idle token comes in again without a message, as often as it likes, while
others wait for other tokens. Here it may do so `reentry` times after each turn that the coordinator gave it. After that
it asks like everybody, and is given a turn in the queue that is next; its idle token stays where it is, for whoever
comes next in that queue. So a node may have several idle tokens, being the tail of their queues, while it waits or is
inside in another one. A coordinator that is the tail of all queues has all tokens, and nobody waits in any queue: it
comes in without a limit and without a message.

Turns are numbered, and turn b is in queue b mod k. So who has turn b comes after who has turn b - k. A Child says its
number, and its receiver knows which of its places it is about, in whatever order messages come.

It is no subclass of FairK: that class is final, and would need 7 % more instructions an event if it were not.
"""

from typing import Any

from fairgate.core.about import About
from fairgate.core.ids import NIL
from fairgate.core.message import Key, Message, register
from fairgate.core.mutex import Mutex
from fairgate.core.outbox import Outbox
from fairgate.core.setup import Setup
from fairgate.core.tuples import replaced
from fairgate.protocols.fair_k import Request, Token, TokenLocations, new_token, new_token_locations


class NumberedChild(Message):
    """r has turn b, and comes after turn b - k, which was given to you."""

    __slots__ = ("b", "r")
    tag = "fb.child"

    def __init__(self, b: int, r: int) -> None:
        self.b = b
        self.r = r

    def key(self) -> Key:
        return (self.tag, self.b, self.r)


register(NumberedChild)


def new_numbered_child(b: int, r: int) -> NumberedChild:
    """As `new_token` in fair_k.py, and for the same reason."""
    m = NumberedChild.__new__(NumberedChild)
    m.b = b
    m.r = r
    return m


class FairKBounded(Mutex):
    # fmt: off
    __slots__ = (
        "child", "counter_number", "deferred", "fence", "idle", "is_coordinator", "k", "my_request", "next", "parent",
        "parent_on_child", "reentries", "reentry", "slot", "token_locations", "turn"
    )
    # fmt: on

    about = About(
        name="fair_k_bounded",
        paper="FK",
        kind="token",
        cost="O(log N), about 8 at N=100",
        slots=True,
        ids={"key": (4, 5, 6, 11), "fk.request": (1,), "fb.child": (2,), "fk.token_locations": (1,)},
        options={"parent_on_child": True, "reentry": 8},
    )

    def __init__(self, me: int, setup: Setup, out: Outbox) -> None:
        Mutex.__init__(self, me, setup, out)
        self.parent_on_child: bool = setup.options.get("parent_on_child", True)
        self.reentry: int = setup.options.get("reentry", 8)
        self.k = setup.k
        self.my_request = Request(me)
        self.parent = setup.root  # FK:I1
        self.next = NIL
        self.child = NIL  # of the place where it waits or is inside
        self.slot = NIL  # of the token it is inside with
        self.fence = NIL
        self.idle: tuple[tuple[int, int], ...] = ()  # (slot, fence) of the others that are here
        self.turn = setup.holders.get(me, NIL)  # FK:BI: the last one; NIL from asking until TokenLocations says it
        self.reentries = 0  # since the last turn began
        self.deferred = False  # a request that is to be made when TokenLocations has come
        if self.turn != NIL:
            self.idle = ((self.turn, setup.first_fence),)  # FK:I2
        self.is_coordinator = me == setup.root
        self.token_locations: tuple[int, ...] = ()
        self.counter_number = NIL  # the number of the next turn
        if self.is_coordinator:  # FK:I3
            self.parent = NIL
            self.token_locations = tuple(setup.holders)
            self.counter_number = self.k

    def request_cs(self) -> None:
        if self.idle and self.reentries < self.reentry:
            self.reentries += 1  # FK:BR1
            self.take_token(self.idle[0][0])
        elif self.nobody_waits():
            self.take_token(self.idle[0][0])  # FK:BR2
        else:
            self.ask()  # FK:BR3

    def ask(self) -> None:
        if self.is_coordinator:
            self.assign_itself()  # FK:BA1
        elif self.parent == NIL or self.next != NIL:
            self.out.note("it asks again, and is still to become the coordinator for the last time")
            self.deferred = True  # FK:BA2
        else:
            self.out.send(self.parent, self.my_request)  # FK:RQ1
            self.parent = NIL  # FK:RQ2
            self.turn = NIL

    def release_cs(self) -> None:
        if self.child != NIL:
            self.out.send(self.child, new_token(self.slot, self.fence))  # FK:RL1
            self.child = NIL  # FK:RL2
        else:
            self.idle = tuple(sorted([*self.idle, (self.slot, self.fence)]))
        self.slot = NIL
        self.fence = NIL

    def on_message(self, src: int, msg: Message) -> None:
        if isinstance(msg, Request):
            self.on_request(msg)
        elif isinstance(msg, Token):
            self.on_token(msg)
        elif isinstance(msg, NumberedChild):
            self.on_child(msg)
        elif isinstance(msg, TokenLocations):
            self.on_token_locations(msg)

    def on_request(self, m: Request) -> None:
        if self.parent != NIL:
            self.out.send(self.parent, m)  # FK:PR1
        elif self.is_coordinator:
            self.assign(m.r)  # FK:PR3
        else:
            self.next = m.r  # FK:PR2
        self.parent = m.r  # FK:PR4

    def assign(self, r: int) -> None:
        b = self.counter_number
        c = b % self.k
        a = self.token_locations
        self.out.send(a[c], new_numbered_child(b, r))  # FK:AS1
        self.out.send(r, new_token_locations(replaced(a, c, r), b + 1))  # FK:AS3
        self.is_coordinator = False
        self.token_locations = ()
        self.counter_number = NIL

    def assign_itself(self) -> None:
        """The coordinator takes the next turn, and stays the coordinator."""
        b = self.counter_number
        c = b % self.k
        a = self.token_locations
        self.turn = b
        self.counter_number = b + 1
        if a[c] == self.me:
            self.out.note("the coordinator comes after itself")
            self.begin_turn(c)  # FK:BS1
        else:
            self.out.send(a[c], new_numbered_child(b, self.me))  # FK:BS2
            self.token_locations = replaced(a, c, self.me)

    def on_token(self, m: Token) -> None:
        self.reentries = 0  # FK:BT
        self.enter_with(m.slot, m.fence)  # FK:PT1

    def on_child(self, m: NumberedChild) -> None:
        c = m.b % self.k
        if c == self.slot or (self.waits() and m.b - self.k == self.turn):
            self.child = m.r  # FK:PC1
        elif m.r == self.me:
            self.out.note("its turn is the one after its own idle token")
            self.begin_turn(c)  # FK:BC1
        else:
            if self.waits():
                self.out.note("an idle token was sent on by one who waits for another")
            self.out.send(m.r, new_token(c, self.take_idle(c)))  # FK:PC2
        if self.parent_on_child and self.parent != NIL and self.next == NIL and m.b > self.turn:
            self.parent = m.r  # FK:PC3

    def on_token_locations(self, m: TokenLocations) -> None:
        self.token_locations = m.a  # FK:TL1
        self.counter_number = m.b
        self.is_coordinator = True
        self.turn = m.b - 1
        if self.next != NIL:
            self.out.note("the coordinator had a successor waiting")
            self.assign(self.next)  # FK:TL2
            self.next = NIL
        if self.deferred:
            self.deferred = False
            self.ask()  # FK:BL

    def waits(self) -> bool:
        return self.requesting_cs and not self.inside

    def begin_turn(self, c: int) -> None:
        """Its turn is the next of queue c, whose token is idle here."""
        self.reentries = 0
        self.take_token(c)

    def take_token(self, c: int) -> None:
        self.enter_with(c, self.take_idle(c))

    def take_idle(self, c: int) -> int:
        """The fence of the idle token c, which is idle no longer."""
        (fence,) = [fence for slot, fence in self.idle if slot == c]
        self.idle = tuple([token for token in self.idle if token[0] != c])
        return fence

    def enter_with(self, slot: int, fence: int) -> None:
        """Each entry is one fence further."""
        self.slot = slot
        self.fence = fence + 1
        self.enter_cs(self.slot, self.fence)

    def nobody_waits(self) -> bool:
        """Anywhere: all queues end here."""
        return self.is_coordinator and self.token_locations.count(self.me) == self.k

    def alone(self) -> bool:
        return self.slot != NIL and self.nobody_waits()

    def retaken(self, times: int) -> None:
        self.fence += times

    def key(self) -> Key:
        return (
            self.version,
            self.request,
            self.requesting_cs,
            self.inside,
            self.parent,
            self.next,
            self.child,
            self.slot,
            self.fence,
            self.idle,
            self.is_coordinator,
            self.token_locations,
            self.counter_number,
            self.turn,
            self.reentries,
            self.deferred,
        )

    def load(self, key: Key) -> None:
        self.check_version(key)
        (
            _,
            self.request,
            self.requesting_cs,
            self.inside,
            self.parent,
            self.next,
            self.child,
            self.slot,
            self.fence,
            idle,
            self.is_coordinator,
            locations,
            self.counter_number,
            self.turn,
            self.reentries,
            self.deferred,
        ) = key
        self.idle = tuple([(slot, fence) for slot, fence in idle])
        self.token_locations = tuple(locations)

    def tokens(self) -> int:
        return len(self.idle) + int(self.slot != NIL)

    def coordinators(self) -> int:
        return int(self.is_coordinator)

    def show(self) -> dict[str, Any]:
        return {
            "parent": self.parent,
            "next": self.next,
            "child": self.child,
            "token": None if self.slot == NIL else self.slot,
            "idle": tuple([slot for slot, _ in self.idle]),
            "inside": self.inside,
            "locations": self.token_locations,
            "counter": self.counter_number,
            "turn": self.turn,
            "reentries": self.reentries,
        }
