"""The Line, which is the state of one_line's coordinator, and the messages. papers/one_line.md explains them."""

from fairgate.core.declare import Fixed, Id, message, record
from fairgate.core.ids import NIL
from fairgate.core.message import Message
from fairgate.core.slots import Slots
from fairgate.core.waiting import Waiting

Request = tuple[int, int]  # (node, number of its request)
Requests = tuple[Request, ...]


@record
class Loan:
    """What the coordinator knows about one token.

    The promise, that is who gets the token next, is the request (next, next_n) and those in `rest`. Usually it has one
    request only, so that a promise is two numbers and creates no objects.
    """

    slot: int
    fence: int  # when it was lent
    holder: Id = NIL  # NIL: it is idle
    n: int = 0  # number of the holder's request
    next: Id = NIL  # NIL: nothing is promised
    next_n: int = 0
    rest: Requests = ()
    stamp: int = 0  # of the last promise
    since: int = 0  # Line.count at that time, if the promise is not overdue

    def promise(self) -> Requests:
        return ((self.next, self.next_n), *self.rest) if self.next != NIL else ()

    def keep(self, requests: Requests) -> None:
        """Of its promise, only these requests remain."""
        if requests:
            self.next = requests[0][0]
            self.next_n = requests[0][1]
            self.rest = requests[1:]
        else:
            self.next = NIL
            self.next_n = 0
            self.rest = ()

    def has_promised(self, r: int) -> bool:
        if self.next == r:
            return True
        return r in [request[0] for request in self.rest]

    def copy(self) -> "Loan":
        made: Loan = Loan(self.slot, self.fence)
        made.holder = self.holder
        made.n = self.n
        made.next = self.next
        made.next_n = self.next_n
        made.rest = self.rest
        made.stamp = self.stamp
        made.since = self.since
        return made


@record
class Line:
    """The coordinator's state."""

    loans: list[Loan]  # by slot
    idle: Slots
    left: int  # requests to come until the Line moves on
    hungry: Slots = Slots()  # loans that need promises, in the order in which they were lent
    told: Slots = Slots()  # loans with promises that are not overdue, the oldest first
    waiting: Waiting = Waiting()  # the line; requests that are promised or in `again` are known to it
    reign: int = 0
    last: Id = NIL  # the node that asked last
    again: list[Request] = []  # requests that were promised, and are to be promised once more
    doubled: set[int] = set()  # nodes whose request may be promised on several loans
    count: int = 0  # of loans and promises
    lent: Fixed[Slots] = Slots()  # loans that begin in this step
    changed: Fixed[Slots] = Slots()  # loans whose promise has changed in this step

    def complete(self) -> None:
        for request in self.again:
            self.waiting.know(request[0], request[1], NIL)
        for loan in self.loans:
            for request in loan.promise():
                self.waiting.know(request[0], request[1], loan.slot)

    def copy(self) -> "Line":
        made: Line = Line([loan.copy() for loan in self.loans], self.idle.copy(), self.left)
        made.hungry = self.hungry.copy()
        made.told = self.told.copy()
        made.waiting = self.waiting.copy()
        made.reign = self.reign
        made.last = self.last
        made.again = list(self.again)
        made.doubled = set(self.doubled)
        made.count = self.count
        return made

    def trim(self) -> None:
        """Give equal states equal forms: with ages instead of counts."""
        for loan in self.loans:
            loan.since = loan.since - self.count if self.told.has(loan.slot) else 0
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
    """Enter, if you still wait for your request n. After you, the token goes to (next, next_n), and then to `rest`."""

    slot: int
    fence: int
    n: int
    reign: int
    door: Id
    stamp: int
    next: Id
    next_n: int
    rest: Requests


@message("ol.head")
class Head(Message):
    """The promise for your request n: when you leave, the token goes to (next, next_n), and after that to `rest`."""

    n: int
    reign: int
    door: Id
    stamp: int
    next: Id
    next_n: int
    rest: Requests


@message("ol.moved", coordinators=1)
class Moved(Message):
    """The receiver is now the coordinator. With the Line travels the token of this slot, or none (NIL).

    The receiver copies the Line, since messages do not change.
    """

    line: Line
    slot: int

    def slots(self) -> tuple[int, ...]:
        idle: tuple[int, ...] = self.line.idle.key()
        return idle if self.slot == NIL else (self.slot, *idle)

    def tokens(self) -> int:
        return self.line.idle.count + int(self.slot != NIL)
