"""The coordinator of one_line: the line, the loans and the promises. OneLine (protocol.py) extends it by the client.

The coordinator's methods get the Line as an argument, since it may move on in the middle of a step.
"""

from typing import final

from fairgate.core.declare import Fixed, Id, Option, node
from fairgate.core.ids import NIL
from fairgate.core.mutex import Mutex
from fairgate.protocols.one_line.line import Gone, Head, Line, Loan, Moved, Token


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
        known: int = line.waiting.number(r)
        if known < n:
            if known != NIL:
                self.end(line, r)  # it has been served, for r asks again
            line.waiting.add(r, n)  # OL:JN1

    def served(self, line: Line, r: Id, n: int) -> None:
        """Request n of node r has been served. It may still be in line, since messages overtake each other."""
        known: int = line.waiting.number(r)
        if known != NIL and known <= n:
            self.end(line, r)

    @final
    def end(self, line: Line, r: Id) -> None:
        """Take the request of node r out of the line, wherever it is. Loans promised to it get another promise."""
        slot: int = line.waiting.slot(r)
        line.waiting.forget(r)
        if self.is_doubled(line, r):
            line.doubled.discard(r)
            for loan in line.loans:
                self.drop(line, loan, r)
        elif slot != NIL:
            self.drop(line, line.loans[slot], r)
        else:
            line.waiting.remove(r)
        if line.again:
            line.again = [request for request in line.again if request[0] != r]

    @final
    def drop(self, line: Line, loan: Loan, r: Id) -> None:
        """Remove the request of node r from the promise of this loan, if it is there."""
        if loan.has_promised(r):
            loan.keep(tuple([request for request in loan.promise() if request[0] != r]))
            line.changed.add(loan.slot)
            self.starve(line, loan)
            if loan.next == NIL:
                line.told.remove(loan.slot)

    @final
    def is_doubled(self, line: Line, r: Id) -> bool:
        """May the request of node r be promised on several loans?"""
        return len(line.doubled) > 0 and r in line.doubled

    def serve(self, line: Line, entrant: Id) -> None:
        """Lend idle tokens, make promises, and move the Line if it is time. `entrant`: who has got a token, or NIL."""
        entering: bool = False
        while line.idle.count > 0 and line.waiting.known > 0:
            self.renew(line)
            r: int = self.first(line)
            n: int = line.waiting.number(r)
            self.leave(line, r)
            if r != self.me:
                entrant = r
                line.lent.add(self.lend(line, r, n))  # OL:SV1
            elif self.waits_for(n):
                entering = True
                self.slot = self.lend(line, r, n)  # OL:SV2
                self.fence = line.loans[self.slot].fence + 1
        heir: int = entrant if line.left <= 0 and entrant != self.me else NIL  # OL:SV3
        along: int = line.lent.take_last() if heir != NIL and line.lent.count > 0 else NIL
        if line.hungry.count > 0:
            self.promise(line, heir)
        if line.lent.count > 0 or line.changed.count > 0:
            self.tell(line)  # OL:SV4
        if heir != NIL:
            self.move(line, heir, along)  # OL:SV5
        if entering:
            self.enter_cs(self.slot, self.fence)  # OL:SV6

    @final
    def first(self, line: Line) -> int:
        """The node whose request is the first that is not promised, or, if all are, the one promised first."""
        r: int = self.unpromised(line)
        return r if r != NIL else line.loans[line.told.first()].next

    @final
    def unpromised(self, line: Line) -> int:
        """Take the first request that is not promised, or is to be promised again. Returns its node, or NIL.

        The caller promises it, or serves it.
        """
        if line.again:
            return line.again.pop(0)[0]
        return line.waiting.take_first()

    @final
    def leave(self, line: Line, r: Id) -> None:
        """The request of node r, which is the first in line, is to be served."""
        if line.waiting.slot(r) != NIL or self.is_doubled(line, r):
            self.end(line, r)
        else:
            line.waiting.forget(r)

    @final
    def move(self, line: Line, r: Id, along: int) -> None:
        """Make node r the coordinator. The token of the slot `along` goes with the Line."""
        if self.slot != NIL:
            self.starve(line, line.loans[self.slot])  # OL:MO1
        line.reign += 1
        line.trim()
        self.line = None
        self.latest = line.reign
        self.door = r
        self.out.send(r, Moved(line, along))

    def is_lone(self, line: Line, r: Id) -> bool:
        """Is r the only client, and not for the first time? Then the Line goes to it with its token."""
        return line.last == r and line.waiting.known == 0 and line.idle.count == self.k

    # Loans.

    @final
    def lend(self, line: Line, r: Id, n: int) -> int:
        """Lend the token that has been idle for longest. Returns its slot."""
        slot: int = line.idle.take_first()
        self.begin_loan(line, line.loans[slot], r, n)
        return slot

    @final
    def begin_loan(self, line: Line, loan: Loan, r: Id, n: int) -> None:
        loan.holder = r
        loan.n = n
        line.hungry.remove(loan.slot)
        if r != self.me:
            self.starve(line, loan)

    def pass_loan(self, line: Line, loan: Loan, m: Gone) -> None:
        """A holder has passed its token on. The rest of its promise has gone with the token, if it knew the latest."""
        if m.stamp == loan.stamp and loan.next == m.r and loan.next_n == m.n and m.r != self.me:
            loan.keep(loan.rest)
            if loan.next == NIL:
                line.told.remove(loan.slot)
            if not self.is_doubled(line, m.r):
                line.waiting.forget(m.r)
        else:
            self.withdraw(line, loan)
        loan.fence = m.fence
        self.begin_loan(line, loan, m.r, m.n)

    def take_back(self, line: Line, slot: int, fence: int) -> None:
        """A token is here, and idle."""
        loan: Loan = line.loans[slot]
        self.withdraw(line, loan)
        line.hungry.remove(slot)
        loan.holder = NIL
        loan.fence = fence
        line.idle.add(slot)

    # Promises.

    @final
    def promise(self, line: Line, heir: Id) -> None:
        """Promise requests on the loans that need them, those lent first before the others."""
        while line.hungry.count > 0 and self.ahead > 0:
            loan: Loan = line.loans[line.hungry.first()]
            if loan.holder != heir:
                self.renew(line)
                r: int = self.unpromised(line)
                if r == NIL:
                    break
                self.fill(line, loan, r)
            line.hungry.remove(loan.slot)

    @final
    def fill(self, line: Line, loan: Loan, r: Id) -> None:
        """Promise the request of node r on this loan, and further ones as far as `ahead` allows."""
        while r != NIL:
            n: int = line.waiting.promise(r, loan.slot)
            if loan.next == NIL:
                loan.next = r  # OL:PM1
                loan.next_n = n
            elif not loan.has_promised(r):
                loan.rest = (*loan.rest, (r, n))
            r = self.unpromised(line) if 1 + len(loan.rest) < self.ahead else NIL
        line.changed.add(loan.slot)

    @final
    def renew(self, line: Line) -> None:
        """Requests whose promise is overdue are to be promised again, on another loan."""
        while line.told.count > 0:
            loan: Loan = line.loans[line.told.first()]
            if line.count - loan.since < self.limit:
                return
            line.told.remove(loan.slot)
            for request in loan.promise():
                if request not in line.again:
                    self.out.note("a request was promised on a second loan")
                    line.doubled.add(request[0])
                    line.again.append(request)  # OL:PM2

    @final
    def tell(self, line: Line) -> None:
        """Send the tokens that have just been lent, with their promises, and new promises to other holders."""
        while line.lent.count > 0:
            loan: Loan = line.loans[line.lent.take_first()]
            line.changed.remove(loan.slot)
            self.stamp_promise(line, loan)
            self.out.send(
                loan.holder,
                Token(
                    loan.slot, loan.fence, loan.n, self.latest, self.door, loan.stamp, loan.next, loan.next_n, loan.rest
                ),
            )
        while line.changed.count > 0:
            loan = line.loans[line.changed.take_first()]
            if loan.holder not in (NIL, self.me):
                self.stamp_promise(line, loan)
                self.out.send(
                    loan.holder,
                    Head(loan.n, self.latest, self.door, loan.stamp, loan.next, loan.next_n, loan.rest),
                )

    @final
    def stamp_promise(self, line: Line, loan: Loan) -> None:
        """Number a new or changed promise, which may be empty. Its age counts from now."""
        line.told.remove(loan.slot)
        loan.stamp += 1
        line.count += 1
        if loan.next != NIL:
            loan.since = line.count
            line.told.add(loan.slot)

    def withdraw(self, line: Line, loan: Loan) -> None:
        """The promises of this loan are void. They are to be made again."""
        line.told.remove(loan.slot)
        for request in loan.promise():
            if request not in line.again:
                line.again.append(request)
        loan.keep(())

    @final
    def starve(self, line: Line, loan: Loan) -> None:
        """This loan needs promises, unless it has enough."""
        if loan.next == NIL or 1 + len(loan.rest) <= self.ahead // 2:
            line.hungry.add(loan.slot)
