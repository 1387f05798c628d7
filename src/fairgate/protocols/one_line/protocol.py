"""One line, k windows: a freed token goes straight to the head of a single line. Our own algorithm.

Theory of operation. One node, the coordinator, has the *Line*: the waiting requests in order, the idle tokens, and for
every other token a loan, which says who has it. The coordinator lends an idle token to the first request. While all
tokens are lent it *promises*: it tells a holder in advance to whom its token goes next (Head). A holder that leaves
sends its token to the first node promised to it, and reports that (Gone). A holder without a promise sends its token
back (Free). A token that comes to a node whose request has been served already goes back too.

A request that waits for a holder who stays long is promised on a second loan after `patience` * k newer loans and
promises, then on a third, so that nobody waits for one holder alone. Promises are stamped: a newer one of the same loan
replaces an older one.

After `reign` requests the Line moves on to a node that enters: a new reign. Every node knows a `door`, the coordinator
of the latest reign that it has heard of. Messages to the coordinator go to the door, and from there to later ones,
until they meet the Line. A node that forwards a request which has been forwarded `chase` times enters it in the line
itself when it next becomes the coordinator; otherwise the request might run after the Line forever.

Labels (OL:SV1), the reasons why it is safe and live, and the bound on overtakes: papers/one_line.md.
"""

from typing import Any, final

from fairgate.core.about import About
from fairgate.core.declare import Id, Option, node
from fairgate.core.ids import NIL
from fairgate.core.message import Key, Message
from fairgate.core.setup import Setup
from fairgate.core.slots import Slots
from fairgate.protocols.one_line.coordinator import Coordinator
from fairgate.protocols.one_line.line import Ask, Free, Gone, Head, Line, Loan, Moved, Requests, Token


@node
class OneLine(Coordinator):
    about = About(name="one_line", paper="ours", kind="token", cost="about 4, 0 for a lone client", slots=True)

    chase: Option[int] = 8
    n: int = 0  # number of its last request
    next: Id = NIL  # who gets its token next: the promise is (next, next_n), and after that `rest`
    next_n: int = 0
    rest: Requests = ()
    stamp: int = 0  # of that promise
    chased: Requests = ()  # requests that run after the Line
    early: list[Message] = []  # messages to the coordinator that came here before the Line

    def initialize(self, setup: Setup) -> None:
        self.k = setup.k
        self.limit = self.patience * setup.k
        self.door = setup.root  # OL:I1
        if self.me == setup.root:  # OL:I2
            loans = [Loan(slot, setup.first_fence) for slot in range(setup.k)]
            idle = Slots.from_key(tuple(range(setup.k)))
            self.line = Line(loans, idle, self.reign)

    # The client.

    def request_cs(self) -> None:
        self.n += 1
        self.stamp = 0
        line: Line | None = self.line
        if line is not None:
            line.left -= 1
            self.join(line, self.me, self.n)  # OL:RQ1
            self.serve(line, NIL)
        else:
            self.to_door(Ask(self.latest, 0, self.me, self.n))  # OL:RQ2

    def release_cs(self) -> None:
        slot: int = self.slot
        fence: int = self.fence
        while self.next == self.me:
            self.keep(self.rest)  # the coordinator did not know that this request had been served
        r: int = self.next
        n: int = self.next_n
        self.slot = NIL
        self.fence = NIL
        line: Line | None = self.line
        if line is not None:
            self.take_back(line, slot, fence)  # OL:RL1
            self.serve(line, NIL)
        elif r != NIL:
            self.keep(self.rest)
            token = Token(slot, fence, n, self.latest, self.door, self.stamp, self.next, self.next_n, self.rest)
            self.out.send(r, token)  # OL:RL2
            self.to_door(Gone(self.latest, slot, fence, r, n, self.stamp))  # OL:RL3
            self.keep(())
        else:
            self.to_door(Free(self.latest, slot, fence, self.me, self.n))  # OL:RL4

    def on_token(self, m: Token) -> None:
        self.learn(m.reign, m.door)
        line: Line | None = self.line
        if self.waits_for(m.n):
            self.hear(m.stamp, m.next, m.next_n, m.rest)  # OL:TK1
            self.slot = m.slot
            self.fence = m.fence + 1
            self.enter_cs(self.slot, self.fence)  # OL:TK2
        elif line is not None:
            self.take_back(line, m.slot, m.fence)  # OL:TK3
            self.serve(line, NIL)
        else:
            self.out.note("a token came for a request that had been served")
            self.to_door(Free(self.latest, m.slot, m.fence, self.me, m.n))  # OL:TK4

    def on_head(self, m: Head) -> None:
        self.learn(m.reign, m.door)
        if self.requesting_cs and m.n == self.n:
            if self.slot == NIL:
                self.out.note("a promise came before its token")
            self.hear(m.stamp, m.next, m.next_n, m.rest)  # OL:HD1

    @final
    def hear(self, stamp: int, r: Id, n: int, rest: Requests) -> None:
        """A promise for this stay. The coordinator itself needs none."""
        if stamp > self.stamp and self.line is None:
            self.stamp = stamp
            self.next = r
            self.next_n = n
            self.rest = rest

    @final
    def keep(self, rest: Requests) -> None:
        """Of its promise, only these requests remain."""
        if rest:
            self.next = rest[0][0]
            self.next_n = rest[0][1]
            self.rest = rest[1:]
        else:
            self.next = NIL
            self.next_n = 0
            self.rest = ()

    def waits_for(self, n: int) -> bool:
        return self.requesting_cs and self.slot == NIL and n == self.n

    @final
    def learn(self, reign: int, door: int) -> None:
        if reign > self.latest:
            self.latest = reign
            self.door = door

    @final
    def to_door(self, m: Message) -> None:
        if self.door == self.me:
            self.early.append(m)  # OL:DR1: the Line is on its way
        else:
            self.out.send(self.door, m)  # OL:DR2

    # Messages to the coordinator, wherever the Line is.

    def on_ask(self, m: Ask) -> None:
        line: Line | None = self.line
        if line is not None:
            line.left = 0 if self.is_lone(line, m.r) else line.left - 1  # OL:AK1
            line.last = m.r
            self.join(line, m.r, m.n)  # OL:AK2
            self.serve(line, NIL)
        elif m.reign >= self.latest:
            self.out.note("a request came before the Line")
            self.early.append(m)  # OL:AK3
        else:
            if m.hops >= self.chase and (m.r, m.n) not in self.chased:
                self.out.note("a request runs after the Line")
                self.chased = (*self.chased, (m.r, m.n))  # OL:AK4
            self.to_door(Ask(self.latest, m.hops + 1, m.r, m.n))  # OL:AK5

    def on_free(self, m: Free) -> None:
        line: Line | None = self.line
        if line is not None:
            self.served(line, m.r, m.n)  # OL:FR1
            self.take_back(line, m.slot, m.fence)  # OL:FR2
            self.serve(line, NIL)
        elif m.reign >= self.latest:
            self.early.append(m)
        else:
            self.to_door(Free(self.latest, m.slot, m.fence, m.r, m.n))

    def on_gone(self, m: Gone) -> None:
        line: Line | None = self.line
        if line is not None:
            loan: Loan = line.loans[m.slot]
            if m.fence > loan.fence:  # otherwise the token has come back already
                self.pass_loan(line, loan, m)  # OL:GN1
            self.served(line, m.r, m.n)  # OL:GN2
            self.serve(line, m.r)
        elif m.reign >= self.latest:
            self.early.append(m)
        else:
            self.to_door(Gone(self.latest, m.slot, m.fence, m.r, m.n, m.stamp))

    def on_moved(self, m: Moved) -> None:
        line: Line = m.line.copy()
        self.line = line  # OL:MV1
        self.latest = line.reign
        self.door = self.me
        line.left = max(self.reign, self.k, line.waiting.known // 2)
        self.keep(())
        for loan in line.loans:
            if loan.holder == self.me:
                self.stamp = max(self.stamp, loan.stamp)  # OL:MV2: promises that are still on their way are void
                self.withdraw(line, loan)  # OL:MV3
                line.hungry.remove(loan.slot)
        for r, n in self.chased:
            self.join(line, r, n)  # OL:MV4
        self.chased = ()
        entering: bool = m.slot != NIL and self.waits_for(line.loans[m.slot].n)
        if entering:
            self.slot = m.slot
            self.fence = line.loans[m.slot].fence + 1
        elif m.slot != NIL:
            self.take_back(line, m.slot, line.loans[m.slot].fence)  # OL:MV5
        early: list[Message] = self.early
        self.early = []
        for each in early:
            self.on_message(self.me, each)  # OL:MV6
        if self.line is not None:
            self.serve(self.line, NIL)
        if entering:
            self.enter_cs(self.slot, self.fence)  # OL:MV7

    # For drivers.

    def line_key(self) -> Key:
        line: Line | None = self.line
        if line is None:
            return ()
        line.trim()
        return line.key()  # type: ignore[attr-defined, no-any-return]  # derived

    def load_line(self, key: Key) -> None:
        self.line = Line.from_key(key) if key else None  # type: ignore[attr-defined]

    def slots(self) -> tuple[int, ...]:
        found: list[int] = [slot for m in self.early for slot in m.slots()]
        if self.slot != NIL:
            found.append(self.slot)
        if self.line is not None:
            found += self.line.idle.key()
        return tuple(found)

    def tokens(self) -> int:
        held: int = int(self.slot != NIL) + sum([m.tokens() for m in self.early])
        return held if self.line is None else held + self.line.idle.count

    def coordinators(self) -> int:
        return int(self.line is not None)

    def alone(self) -> bool:
        line: Line | None = self.line
        return line is not None and self.slot != NIL and line.idle.count == self.k - 1 and line.waiting.known == 0

    def retaken(self, times: int) -> None:
        self.fence += times

    def show(self) -> dict[str, Any]:
        line: Line | None = self.line
        return {
            "door": self.door,
            "token": self.slot if self.slot != NIL else None,
            "inside": self.inside,
            "then": (self.next, *[r for r, _ in self.rest]) if self.next != NIL else (),
            "line": () if line is None else line.waiting.nodes(),
        }
