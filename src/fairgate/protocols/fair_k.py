"""Fair-k: Reddy, Mittal and Gupta, "Fair K Mutual Exclusion Algorithm for Peer To Peer Systems".

Theory of operation. Everybody who wants in first becomes the coordinator, for a moment. The tree of
`parent` pointers leads to the last node that asked (path reversal); `next` pointers from there form
the privileged queue, along which the coordinator's knowledge travels: `token_locations`, the tails of
the k token queues, and `counter_number`, the queue whose turn it is. A coordinator appends its
successor to that queue by Message_child to its tail, and hands the knowledge on. Tokens run along the
`child` pointers.

Names and order are the paper's; the labels (FK:RQ1 and so on) are those of papers/fair_k.md, which
also says why a token has a number and a fence here.
"""

from typing import Any

from fairgate.core.about import About
from fairgate.core.ids import NIL
from fairgate.core.message import Key, Message, register
from fairgate.core.mutex import Mutex
from fairgate.core.outbox import Outbox
from fairgate.core.setup import Setup
from fairgate.core.tuples import replaced


class Request(Message):
    """Message_request(r): r wants to become the coordinator."""

    __slots__ = ("r",)
    tag = "fk.request"

    def __init__(self, r: int) -> None:
        self.r = r

    def key(self) -> Key:
        return (self.tag, self.r)


class Token(Message):
    """Message_token: the right to be inside, numbered, with the last fence it gave."""

    __slots__ = ("fence", "slot")
    tag = "fk.token"

    def __init__(self, slot: int, fence: int) -> None:
        self.slot = slot
        self.fence = fence

    def key(self) -> Key:
        return (self.tag, self.slot, self.fence)

    def tokens(self) -> int:
        return 1


class Child(Message):
    """Message_child(r): r comes after you in your token's queue."""

    __slots__ = ("r",)
    tag = "fk.child"

    def __init__(self, r: int) -> None:
        self.r = r

    def key(self) -> Key:
        return (self.tag, self.r)


class TokenLocations(Message):
    """Message_token_locations(a, b): you are the coordinator now."""

    __slots__ = ("a", "b")
    tag = "fk.token_locations"

    def __init__(self, a: tuple[int, ...], b: int) -> None:
        self.a = a
        self.b = b

    def key(self) -> Key:
        return (self.tag, self.a, self.b)

    @classmethod
    def from_fields(cls, *fields: Any) -> "TokenLocations":
        a, b = fields
        return cls(tuple(a), b)

    def coordinators(self) -> int:
        return 1


register(Request, Token, Child, TokenLocations)


# Messages built field by field. `Child(r)` is the same, but compiled it boxes its arguments for
# __init__: a fifth of a simulation's instructions (docs/benchmarks.md).


def new_token(slot: int, fence: int) -> Token:
    m = Token.__new__(Token)
    m.slot = slot
    m.fence = fence
    return m


def new_child(r: int) -> Child:
    m = Child.__new__(Child)
    m.r = r
    return m


def new_token_locations(a: tuple[int, ...], b: int) -> TokenLocations:
    m = TokenLocations.__new__(TokenLocations)
    m.a = a
    m.b = b
    return m


class FairK(Mutex):
    # fmt: off
    __slots__ = (
        "child", "counter_number", "fence", "is_coordinator", "k", "my_request", "next", "parent", "parent_on_child",
        "slot", "token_locations", "token_present"
    )
    # fmt: on

    about = About(
        name="fair_k",
        paper="FK",
        kind="token",
        cost="O(log N), about 8 at N=100",
        slots=True,
        ids={"key": (4, 5, 6, 11), "fk.request": (1,), "fk.child": (1,), "fk.token_locations": (1,)},
        options={"parent_on_child": True},
    )

    def __init__(self, me: int, setup: Setup, out: Outbox) -> None:
        Mutex.__init__(self, me, setup, out)
        self.parent_on_child: bool = setup.options.get("parent_on_child", True)
        self.k = setup.k
        self.my_request = Request(me)  # always the same, so made once
        self.parent = setup.root  # FK:I1
        self.next = NIL
        self.child = NIL
        self.slot = setup.holders.get(me, NIL)
        self.token_present = self.slot != NIL  # FK:I2
        self.fence = setup.first_fence if self.token_present else NIL
        self.is_coordinator = me == setup.root
        self.token_locations: tuple[int, ...] = ()
        self.counter_number = NIL
        if self.is_coordinator:  # FK:I3
            self.parent = NIL
            self.token_locations = tuple(setup.holders)
            self.counter_number = 0

    def request_cs(self) -> None:
        if self.token_present:
            self.take_token()
        else:
            self.out.send(self.parent, self.my_request)  # FK:RQ1
            self.parent = NIL  # FK:RQ2

    def release_cs(self) -> None:
        if self.child != NIL:
            self.send_token(self.child)  # FK:RL1
            self.child = NIL  # FK:RL2

    def on_message(self, src: int, msg: Message) -> None:
        # Not isinstance: where it says no the interpreter looks for __class__ as well, 3 % of a run.
        if type(msg) is Request:
            self.on_request(msg)
        elif type(msg) is Token:
            self.on_token(msg)
        elif type(msg) is Child:
            self.on_child(msg)
        elif type(msg) is TokenLocations:
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
        """The coordinator puts r at the end of the queue whose turn it is, and makes r the coordinator."""
        c = self.counter_number
        a = self.token_locations
        self.is_coordinator = False
        self.token_locations = ()
        self.counter_number = NIL
        self.out.send(a[c], new_child(r))  # FK:AS1
        self.out.send(r, new_token_locations(replaced(a, c, r), (c + 1) % self.k))  # FK:AS2, FK:AS3

    def on_token(self, m: Token) -> None:
        self.token_present = True  # FK:PT1
        self.slot = m.slot
        self.fence = m.fence
        self.take_token()

    def on_child(self, m: Child) -> None:
        if self.requesting_cs:
            self.child = m.r  # FK:PC1
        else:
            self.out.note("child arrived after release")
            self.send_token(m.r)  # FK:PC2
        if self.parent_on_child:
            self.parent = m.r  # FK:PC3

    def on_token_locations(self, m: TokenLocations) -> None:
        self.token_locations = m.a  # FK:TL1
        self.counter_number = m.b
        self.is_coordinator = True
        if self.next != NIL:
            self.out.note("the coordinator had a successor waiting")
            self.assign(self.next)  # FK:TL2
            self.parent = self.next
            self.next = NIL

    def take_token(self) -> None:
        """Enter with the token that is here: each entry is one fence further."""
        self.fence += 1
        self.enter_cs(self.slot, self.fence)

    def send_token(self, r: int) -> None:
        self.out.send(r, new_token(self.slot, self.fence))
        self.token_present = False
        self.slot = NIL
        self.fence = NIL

    def alone(self) -> bool:
        return self.token_present and self.is_coordinator and self.token_locations == (self.me,) * self.k

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
            self.token_present,
            self.slot,
            self.fence,
            self.is_coordinator,
            self.token_locations,
            self.counter_number,
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
            self.token_present,
            self.slot,
            self.fence,
            self.is_coordinator,
            locations,
            self.counter_number,
        ) = key
        self.token_locations = tuple(locations)

    def tokens(self) -> int:
        return int(self.token_present)

    def coordinators(self) -> int:
        return int(self.is_coordinator)

    def show(self) -> dict[str, Any]:
        return {
            "parent": self.parent,
            "next": self.next,
            "child": self.child,
            "token": self.slot if self.token_present else None,
            "inside": self.inside,
            "locations": self.token_locations,
            "counter": self.counter_number,
        }
