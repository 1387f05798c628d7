"""Fair-k with a bound on how often an idle holder overtakes. Labels and reasons: papers/fair_k.md, "Bounded".

In Fair-k the holder of an idle token re-enters without a message, as often as it likes, while others wait for other
tokens. Here it may do so at most `reentry` times after each turn that the coordinator gave it. After that it requests
like everyone else, and gets a turn in the token queue that is next. Its idle token stays where it is, for the next node
in that token's queue. So a node may hold several idle tokens, as the tail of their queues, while it waits in another
queue or is inside with another token. A coordinator that is the tail of all queues holds all tokens, and nobody waits:
it enters without a message and without a limit.

Turns are numbered: turn b is in queue b mod k, behind turn b - k. A NumberedChild carries its turn number, so the
receiver knows which of its own turns it follows, in whatever order messages arrive.
"""

from fairgate.core.about import About
from fairgate.core.declare import Id, Ids, Option, message, node
from fairgate.core.ids import NIL
from fairgate.core.message import Message
from fairgate.core.setup import Setup
from fairgate.core.tuples import replaced
from fairgate.protocols.fair_k import FairK, Request, Token, TokenLocations


@message("fb.child")
class NumberedChild(Message):
    """Node r has turn b, and so follows turn b - k, which is the receiver's."""

    b: int
    r: Id


@node
class FairKBounded(FairK):
    about = About(
        name="fair_k_bounded", paper="FK", kind="token", cost="O(log N), about 8 at N=100", slots=True, symmetric=True
    )
    shown = "parent next child token=slot idle inside locations=token_locations counter=counter_number turn reentries"

    # `child`, `slot` and `fence` belong to the token that this node waits for or is inside with. `counter_number` is
    # the number of the next turn.
    reentry: Option[int] = 8
    idle: tuple[tuple[int, int], ...] = ()  # (slot, fence) of the other tokens that are here
    turn: int  # number of its last turn; NIL from a request until TokenLocations arrives
    reentries: int = 0  # since the last turn began
    deferred: bool = False  # should it request as soon as TokenLocations arrives?

    def initialize(self, setup: Setup) -> None:
        FairK.initialize(self, setup)
        self.turn = self.slot  # FK:BI
        if self.token_present:
            self.put_aside()  # FK:I2
        if self.is_coordinator:
            self.counter_number = setup.k

    def request_cs(self) -> None:
        if self.idle and self.reentries < self.reentry:
            self.reentries += 1  # FK:BR1
            self.take_up(self.idle[0][0])
        elif self.nobody_waits():
            self.take_up(self.idle[0][0])  # FK:BR2
        else:
            self.ask()  # FK:BR3

    def ask(self) -> None:
        if self.is_coordinator:
            self.assign_itself()  # FK:BA1
        elif self.parent == NIL or self.next != NIL:
            self.out.note("it asks again, and is still to become the coordinator for the last time")
            self.deferred = True  # FK:BA2
        else:
            self.out.send(self.parent, Request(self.me))  # FK:RQ1
            self.parent = NIL  # FK:RQ2
            self.turn = NIL

    def release_cs(self) -> None:
        if self.child != NIL:
            self.send_token(self.child)  # FK:RL1
            self.child = NIL  # FK:RL2
        else:
            self.put_aside()

    def assign(self, r: Id) -> None:
        a: Ids = self.token_locations
        b: int = self.counter_number
        c: int = b % self.setup.k
        self.is_coordinator = False
        self.token_locations = ()
        self.counter_number = NIL
        self.out.send(a[c], NumberedChild(b, r))  # FK:AS1
        self.out.send(r, TokenLocations(replaced(a, c, r), b + 1))  # FK:AS3

    def assign_itself(self) -> None:
        """Take the next turn, as the coordinator, and stay the coordinator."""
        a: Ids = self.token_locations
        b: int = self.counter_number
        c: int = b % self.setup.k
        self.turn = b
        self.counter_number = b + 1
        if a[c] == self.me:
            self.out.note("the coordinator comes after itself")
            self.begin_turn(c)  # FK:BS1
        else:
            self.out.send(a[c], NumberedChild(b, self.me))  # FK:BS2
            self.token_locations = replaced(a, c, self.me)

    def on_token(self, m: Token) -> None:
        self.reentries = 0  # FK:BT
        FairK.on_token(self, m)

    def on_numbered_child(self, m: NumberedChild) -> None:
        c: int = m.b % self.setup.k
        if c == self.slot or (self.waits() and m.b - self.setup.k == self.turn):
            self.child = m.r  # FK:PC1
        elif m.r == self.me:
            self.out.note("its turn is the one after its own idle token")
            self.begin_turn(c)  # FK:BC1
        else:
            if self.waits():
                self.out.note("an idle token was sent on by one who waits for another")
            self.out.send(m.r, Token(c, self.take_idle(c)))  # FK:PC2
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

    def nobody_waits(self) -> bool:
        """Is there no waiter anywhere? That is so if all queues end here."""
        return self.is_coordinator and self.token_locations.count(self.me) == self.setup.k

    def begin_turn(self, c: int) -> None:
        """Start a turn in queue c, whose token is idle here."""
        self.reentries = 0
        self.take_up(c)

    def take_up(self, c: int) -> None:
        """Enter with the idle token c."""
        self.fence = self.take_idle(c)
        self.slot = c
        self.token_present = True
        self.take_token()

    def put_aside(self) -> None:
        """Keep the token that was in use, as an idle one."""
        self.idle = tuple(sorted([*self.idle, (self.slot, self.fence)]))
        self.token_present = False
        self.slot = NIL
        self.fence = NIL

    def take_idle(self, c: int) -> int:
        """Remove token c from the idle ones, and return its fence."""
        (fence,) = [fence for slot, fence in self.idle if slot == c]
        self.idle = tuple([token for token in self.idle if token[0] != c])
        return fence

    def broken(self) -> str:
        return ""  # FK's property 1 does not hold: a root may have to take turns like everybody else

    def alone(self) -> bool:
        return self.token_present and self.nobody_waits()

    def slots(self) -> tuple[int, ...]:
        idle: tuple[int, ...] = tuple([slot for slot, _ in self.idle])
        return idle if self.slot == NIL else (self.slot, *idle)
