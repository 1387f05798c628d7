"""The Line, which is the state of one_line's coordinator, and the messages. papers/one_line.md explains them."""

from fairgate.core.declare import Fixed, Id, message, record
from fairgate.core.ids import NIL
from fairgate.core.message import Message

Request = tuple[int, int]  # (node, number of its request)
Requests = tuple[Request, ...]
Slots = tuple[int, ...]
LoanKey = tuple[int, int, int, Requests, int, int, bool, bool]
LineKey = tuple[tuple[LoanKey, ...], Slots, int, int, int, Requests, Requests, Slots, Slots, int]  # Line.key()
LONG = 64  # requests that have left the line are removed from its list when there are this many, and at every move


@record
class Loan:
    """What the coordinator knows about one token."""

    fence: int  # when it was lent
    holder: Id = NIL  # NIL: it is idle
    n: int = 0  # number of the holder's request
    promise: Requests = ()  # who gets it next
    stamp: int = 0  # of the last promise
    since: int = 0  # Line.count at that time
    is_told: bool = False  # is there a promise that is not overdue?
    is_hungry: bool = False  # is it in Line.hungry?


@record
class Line:
    """The coordinator's state."""

    loans: list[Loan]  # by slot
    idle: list[int]  # slots
    left: int  # requests to come until the Line moves on
    reign: int = 0
    last: Id = NIL  # the node that asked last
    waiting: list[Request] = []  # in order; the first `front` of them have left the line
    again: list[Request] = []  # requests that were promised, and are to be promised once more
    hungry: list[int] = []  # slots of loans that need promises, in the order in which they were lent
    doubled: set[int] = set()  # nodes whose request may be promised on several loans
    count: int = 0  # of loans and promises
    told: Fixed[dict[int, int]] = {}  # since -> slot, of loans with promises that are not overdue, the oldest first
    front: Fixed[int] = 0
    asks: Fixed[dict[int, int]] = {}  # node -> number of its request that is in line, promised or not
    changed: Fixed[list[int]] = []  # slots of loans whose promise has changed in this step

    def complete(self) -> None:
        self.asks = dict(self.waiting)
        self.asks.update(self.again)
        for loan in self.loans:
            self.asks.update(loan.promise)
        self.told = dict(sorted([(loan.since, slot) for slot, loan in enumerate(self.loans) if loan.is_told]))

    def trim(self) -> None:
        """Give equal states equal forms: without requests that have left, and with ages instead of counts."""
        self.waiting = self.waiting[self.front :]
        self.front = 0
        for loan in self.loans:
            loan.since = loan.since - self.count if loan.is_told else 0
        self.told = {since - self.count: slot for since, slot in self.told.items()}
        self.count = 0


@message("ol.ask")
class Ask(Message):
    """To the coordinator of this reign: node r wants to enter. `hops`: how often it has been forwarded."""

    reign: int
    hops: int
    r: Id
    n: int


@message("ol.free", tokens=1)
class Free(Message):
    """To the coordinator of this reign: this token is free, and request n of node r has been served."""

    reign: int
    slot: int
    fence: int
    r: Id
    n: int


@message("ol.gone")
class Gone(Message):
    """To the coordinator of this reign: this token went to node r, for its request n, as promised under this stamp."""

    reign: int
    slot: int
    fence: int
    r: Id
    n: int
    stamp: int


@message("ol.token", tokens=1)
class Token(Message):
    """Enter, if you still wait for your request n. Then: who gets the token after you."""

    slot: int
    fence: int
    n: int
    reign: int
    door: Id
    stamp: int
    then: Requests


@message("ol.head")
class Head(Message):
    """When you leave, after your request n, the token goes to the first of these."""

    n: int
    reign: int
    door: Id
    stamp: int
    then: Requests


@message("ol.moved", coordinators=1)
class Moved(Message):
    """The receiver is now the coordinator. With the Line travels the token of this slot, or none (NIL)."""

    line: LineKey
    slot: int

    def slots(self) -> tuple[int, ...]:
        idle: tuple[int, ...] = self.line[1]
        return idle if self.slot == NIL else (self.slot, *idle)

    def tokens(self) -> int:
        return len(self.slots())
