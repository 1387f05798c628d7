"""The coordinator of one_line: the line, the loans and the promises. OneLine (protocol.py) extends it by the client.

The coordinator's methods get the Line as an argument, since it may move on in the middle of a step.
"""

from fairgate.core.declare import Fixed, Id, Option, node
from fairgate.core.ids import NIL
from fairgate.core.mutex import Mutex
from fairgate.protocols.one_line.line import LONG, Gone, Head, Line, Loan, Moved, Request, Token


@node
class Coordinator(Mutex):
    reign: Option[int] = 17
    ahead: Option[int] = 1
    patience: Option[int] = 3
    k: Fixed[int]
    limit: Fixed[int]  # a promise is overdue after this many newer ones
    slot: int = NIL  # of the token that it has
    fence: int = NIL
    latest: int = 0  # the latest reign that it knows of
    door: Id  # the coordinator of that reign
    line: Line | None = None

    def waits_for(self, n: int) -> bool:
        """Does this node wait for its request n?"""
        raise NotImplementedError

    # The line.

    def join(self, line: Line, r: Id, n: int) -> None:
        """Append request n of node r to the line, unless it is there already."""
        known: int = line.asks.get(r, NIL)
        if known < n:
            if known != NIL:
                self.end(line, r)  # it has been served, for r asks again
            line.asks[r] = n
            line.waiting.append((r, n))  # OL:JN1

    def served(self, line: Line, r: Id, n: int) -> None:
        """Request n of node r has been served. It may still be in line, since messages overtake each other."""
        if NIL < line.asks.get(r, NIL) <= n:
            self.end(line, r)

    def end(self, line: Line, r: Id) -> None:
        """Take the request of node r out of the line, wherever it is. Loans promised to it get another promise."""
        del line.asks[r]
        promised: bool = r in line.doubled
        line.doubled.discard(r)
        line.again = [request for request in line.again if request[0] != r]
        for slot, loan in enumerate(line.loans):
            if loan.promise and self.drop(loan, r):
                promised = True
                line.changed.append(slot)
                self.starve(line, slot)
                if not loan.promise:
                    self.forget(line, slot)
        if not promised:
            line.waiting = [request for request in line.waiting[line.front :] if request[0] != r]
            line.front = 0

    def drop(self, loan: Loan, r: Id) -> bool:
        """Remove the request of node r from a promise. Returns whether it was there."""
        for request in loan.promise:
            if request[0] == r:
                loan.promise = tuple([other for other in loan.promise if other[0] != r])
                return True
        return False

    def serve(self, line: Line, entrant: Id) -> None:
        """Lend idle tokens, make promises, and move the Line if it is time. `entrant`: who has got a token, or NIL."""
        lent: list[int] = []
        entering: bool = False
        while line.idle and line.asks:
            self.renew(line)
            request: Request = self.first(line)
            r: int = request[0]
            n: int = request[1]
            if r != self.me:
                entrant = r
                lent.append(self.lend(line, r, n))  # OL:SV1
            elif self.waits_for(n):
                entering = True
                self.slot = self.lend(line, r, n)  # OL:SV2
                self.fence = line.loans[self.slot].fence + 1
        heir: int = entrant if line.left <= 0 and entrant != self.me else NIL  # OL:SV3
        along: int = lent.pop() if lent and heir != NIL else NIL
        if line.hungry:
            self.promise(line, heir)
        if lent or line.changed:
            self.tell(line, lent)  # OL:SV4
        if heir != NIL:
            self.move(line, heir, along)  # OL:SV5
        if entering:
            self.enter_cs(self.slot, self.fence)  # OL:SV6

    def first(self, line: Line) -> Request:
        """Take the first request that is not promised out of the line, or, if all are, the one promised first."""
        request: Request | None = self.unpromised(line)
        if request is None:
            request = line.loans[line.told[next(iter(line.told))]].promise[0]
            self.end(line, request[0])
        elif request[0] in line.doubled:
            self.end(line, request[0])
        else:
            del line.asks[request[0]]
        return request

    def unpromised(self, line: Line) -> Request | None:
        """The first request that is not promised, or is to be promised again, or None.

        The caller promises it, or serves it.
        """
        if line.again:
            return line.again.pop(0)
        if line.front == len(line.waiting):
            return None
        request: Request = line.waiting[line.front]
        line.front += 1
        if line.front >= LONG and 2 * line.front > len(line.waiting):
            line.waiting = line.waiting[line.front :]
            line.front = 0
        return request

    def move(self, line: Line, r: Id, along: int) -> None:
        """Make node r the coordinator. The token of the slot `along` goes with the Line."""
        if self.slot != NIL:
            self.starve(line, self.slot)  # OL:MO1
        line.reign += 1
        line.trim()
        self.line = None
        self.latest = line.reign
        self.door = r
        self.out.send(r, Moved(line.key(), along))  # type: ignore[attr-defined]  # derived

    def is_lone(self, line: Line, r: Id) -> bool:
        """Is r the only client, and not for the first time? Then the Line goes to it with its token."""
        return line.last == r and not line.asks and len(line.idle) == self.k

    # Loans.

    def lend(self, line: Line, r: Id, n: int) -> int:
        """Lend the token that has been idle for longest. Returns its slot."""
        slot: int = line.idle.pop(0)
        self.begin_loan(line, slot, r, n)
        return slot

    def begin_loan(self, line: Line, slot: int, r: Id, n: int) -> None:
        loan: Loan = line.loans[slot]
        loan.holder = r
        loan.n = n
        self.sate(line, slot)
        if r != self.me:
            self.starve(line, slot)

    def pass_loan(self, line: Line, m: Gone) -> None:
        """A holder has passed its token on. The rest of its promise has gone with the token, if it knew the latest."""
        loan: Loan = line.loans[m.slot]
        if m.stamp == loan.stamp and loan.promise and loan.promise[0] == (m.r, m.n) and m.r != self.me:
            loan.promise = loan.promise[1:]
            if not loan.promise:
                self.forget(line, m.slot)
            if m.r not in line.doubled:
                del line.asks[m.r]
        else:
            self.withdraw(line, m.slot)
        loan.fence = m.fence
        self.begin_loan(line, m.slot, m.r, m.n)

    def take_back(self, line: Line, slot: int, fence: int) -> None:
        """A token is here, and idle."""
        loan: Loan = line.loans[slot]
        self.withdraw(line, slot)
        self.sate(line, slot)
        loan.holder = NIL
        loan.fence = fence
        line.idle.append(slot)

    # Promises.

    def promise(self, line: Line, heir: Id) -> None:
        """Promise requests on the loans that need them, those lent first before the others."""
        while line.hungry and self.ahead > 0:
            slot: int = line.hungry[0]
            if line.loans[slot].holder != heir:
                self.renew(line)
                request: Request | None = self.unpromised(line)
                if request is None:
                    break
                self.fill(line, slot, request)
            self.sate(line, slot)

    def fill(self, line: Line, slot: int, request: Request) -> None:
        """Promise this request on this loan, and further ones as far as `ahead` allows."""
        loan: Loan = line.loans[slot]
        following: Request | None = request
        while following is not None:
            if following not in loan.promise:
                loan.promise = (*loan.promise, following)  # OL:PM1
            following = self.unpromised(line) if len(loan.promise) < self.ahead else None
        line.changed.append(slot)

    def renew(self, line: Line) -> None:
        """Requests whose promise is overdue are to be promised again, on another loan."""
        while line.told:
            since: int = next(iter(line.told))
            if line.count - since < self.limit:
                return
            slot: int = line.told[since]
            loan: Loan = line.loans[slot]
            self.forget(line, slot)
            for request in loan.promise:
                if request not in line.again:
                    self.out.note("a request was promised on a second loan")
                    line.doubled.add(request[0])
                    line.again.append(request)  # OL:PM2

    def tell(self, line: Line, lent: list[int]) -> None:
        """Send new promises to their holders, and the tokens that have just been lent, with theirs."""
        for slot in lent:
            self.send_token(line, slot)
        changed: dict[int, None] = dict.fromkeys(line.changed)  # a loan may lose one promise and get another
        line.changed = []
        for slot in changed:
            loan: Loan = line.loans[slot]
            if slot not in lent and loan.holder not in (NIL, self.me):
                self.stamp_promise(line, slot)
                self.out.send(loan.holder, Head(loan.n, self.latest, self.door, loan.stamp, loan.promise))

    def send_token(self, line: Line, slot: int) -> None:
        loan: Loan = line.loans[slot]
        self.stamp_promise(line, slot)
        self.out.send(loan.holder, Token(slot, loan.fence, loan.n, self.latest, self.door, loan.stamp, loan.promise))

    def stamp_promise(self, line: Line, slot: int) -> None:
        """Number a new or changed promise, which may be empty. Its age counts from now."""
        loan: Loan = line.loans[slot]
        self.forget(line, slot)
        loan.stamp += 1
        line.count += 1
        if loan.promise:
            loan.since = line.count
            loan.is_told = True
            line.told[line.count] = slot

    def forget(self, line: Line, slot: int) -> None:
        """This loan has no promise whose age counts."""
        loan: Loan = line.loans[slot]
        if loan.is_told:
            loan.is_told = False
            del line.told[loan.since]

    def withdraw(self, line: Line, slot: int) -> None:
        """The promises of this loan are void. They are to be made again."""
        loan: Loan = line.loans[slot]
        self.forget(line, slot)
        for request in loan.promise:
            if request not in line.again:
                line.again.append(request)
        loan.promise = ()

    def starve(self, line: Line, slot: int) -> None:
        """This loan needs promises."""
        loan: Loan = line.loans[slot]
        if not loan.is_hungry and len(loan.promise) <= self.ahead // 2:
            loan.is_hungry = True
            line.hungry.append(slot)

    def sate(self, line: Line, slot: int) -> None:
        """This loan needs no promises."""
        loan: Loan = line.loans[slot]
        if loan.is_hungry:
            loan.is_hungry = False
            line.hungry.remove(slot)
