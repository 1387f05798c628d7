"""Suzuki and Kasami's mutual exclusion by broadcast: ask everybody, and whoever has the token answers.

Theory of operation. Every request of a node has a number, one more than its last. `RN[j]` is the highest
number heard from j; `LN[j]`, which travels in the token, is the number of j's request that was served
last. So j waits exactly if RN[j] = LN[j] + 1, whatever was overtaken on the way: an old request changes
nothing, because RN takes the larger number. Who leaves appends to the token's queue `Q` everybody it
knows to wait and who is not in it yet, and sends the token to the head.

Names are the paper's. RN and LN are in the order of `setup.members`.
"""

from typing import Any

from fairgate.core.about import About
from fairgate.core.ids import NIL
from fairgate.core.message import Key, Message, register
from fairgate.core.mutex import Mutex
from fairgate.core.outbox import Outbox
from fairgate.core.setup import Setup

SLOT = 0  # the only one


class Request(Message):
    """REQUEST(j, n): j asks for the n-th time."""

    __slots__ = ("j", "n")
    tag = "sk.request"

    def __init__(self, j: int, n: int) -> None:
        self.j = j
        self.n = n

    def key(self) -> Key:
        return (self.tag, self.j, self.n)


class Token(Message):
    """PRIVILEGE(Q, LN): the right to be inside, who comes next, what was served, and the last fence."""

    __slots__ = ("LN", "Q", "fence")
    tag = "sk.token"

    def __init__(self, fence: int, Q: tuple[int, ...], LN: tuple[int, ...]) -> None:
        self.fence = fence
        self.Q = Q
        self.LN = LN

    def key(self) -> Key:
        return (self.tag, self.fence, self.Q, self.LN)

    @classmethod
    def from_fields(cls, *fields: Any) -> "Token":
        fence, queue, served = fields
        return cls(fence, tuple(queue), tuple(served))

    def tokens(self) -> int:
        return 1


register(Request, Token)


class SuzukiKasami(Mutex):
    about = About(
        name="suzuki_kasami",
        paper="FK [21] Suzuki-Kasami 1985",
        kind="token",
        cost="0 or N",
        many=False,
        slots=True,
    )

    def __init__(self, me: int, setup: Setup, out: Outbox) -> None:
        Mutex.__init__(self, me, setup, out)
        self.RN: dict[int, int] = dict.fromkeys(setup.members, 0)
        self.token_present = me in setup.holders
        self.fence = setup.first_fence if self.token_present else NIL
        self.LN: dict[int, int] = dict.fromkeys(setup.members, 0) if self.token_present else {}
        self.Q: tuple[int, ...] = ()  # empty unless the token is here and in use

    def request_cs(self) -> None:
        if self.token_present:
            self.take_token()
        else:
            self.RN[self.me] += 1
            ask = Request(self.me, self.RN[self.me])
            for j in self.setup.members:
                if j != self.me:
                    self.out.send(j, ask)

    def release_cs(self) -> None:
        self.LN[self.me] = self.RN[self.me]
        self.Q += self.newcomers()
        if self.Q:
            self.send_token(self.Q[0], self.Q[1:])

    def newcomers(self) -> tuple[int, ...]:
        """Who waits and is not in the queue yet."""
        queued = set(self.Q)
        return tuple([j for j, n in self.RN.items() if n == self.LN[j] + 1 and j not in queued])

    def on_message(self, src: int, msg: Message) -> None:
        if isinstance(msg, Request):
            self.on_request(msg)
        elif isinstance(msg, Token):
            self.on_token(msg)

    def on_request(self, m: Request) -> None:
        if m.n <= self.RN[m.j]:
            self.out.note("an old request came late")
        self.RN[m.j] = max(self.RN[m.j], m.n)
        if self.token_present and not self.requesting_cs and self.RN[m.j] == self.LN[m.j] + 1:
            self.send_token(m.j, ())

    def on_token(self, m: Token) -> None:
        self.token_present = True
        self.fence = m.fence
        self.Q = m.Q
        self.LN = dict(zip(self.setup.members, m.LN, strict=True))
        self.take_token()

    def take_token(self) -> None:
        """Enter with the token that is here: each entry is one fence further."""
        self.fence += 1
        self.enter_cs(SLOT, self.fence)

    def send_token(self, j: int, rest: tuple[int, ...]) -> None:
        self.out.send(j, Token(self.fence, rest, tuple(self.LN.values())))
        self.token_present = False
        self.fence = NIL
        self.Q = ()
        self.LN = {}

    def key(self) -> Key:
        return (
            self.version,
            self.request,
            self.requesting_cs,
            self.inside,
            tuple(self.RN.values()),
            self.token_present,
            self.fence,
            self.Q,
            tuple(self.LN.values()),
        )

    def load(self, key: Key) -> None:
        self.check_version(key)
        (
            _,
            self.request,
            self.requesting_cs,
            self.inside,
            heard,
            self.token_present,
            self.fence,
            queue,
            served,
        ) = key
        self.RN = dict(zip(self.setup.members, heard, strict=True))
        self.Q = tuple(queue)
        self.LN = dict(zip(self.setup.members, served, strict=True)) if self.token_present else {}

    def tokens(self) -> int:
        return int(self.token_present)

    def show(self) -> dict[str, Any]:
        return {
            "RN": tuple(self.RN.values()),
            "token": SLOT if self.token_present else None,
            "inside": self.inside,
            "Q": self.Q,
            "LN": tuple(self.LN.values()),
        }
