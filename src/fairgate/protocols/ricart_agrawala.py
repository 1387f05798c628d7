"""Ricart and Agrawala, "An Optimal Algorithm for Mutual Exclusion in Computer Networks" (1981).

Theory of operation. A node that wants to enter asks all others, and enters when all have replied. A node that is
requesting or inside defers its replies to requests later than its own. Requests are ordered by Lamport timestamp, then
by id. A request does not end before all replies to it have arrived, so a late reply cannot be mistaken for one to the
next request, and messages may overtake each other.

Names are the paper's; its Requesting_Critical_Section is `requesting_cs`.
"""

from fairgate.core.about import About
from fairgate.core.declare import Fixed, Ids, message, node
from fairgate.core.ids import NIL
from fairgate.core.message import Message
from fairgate.core.mutex import Mutex
from fairgate.core.setup import Setup


@message("ra.request")
class Request(Message):
    """REQUEST(sequence_number): the sender wants to enter."""

    sequence_number: int


@message("ra.reply")
class Reply(Message):
    """REPLY: the sender permits the receiver to enter."""


@node
class RicartAgrawala(Mutex):
    about = About(
        name="ricart_agrawala",
        paper="Ricart and Agrawala 1981",
        kind="permission",
        cost="2(N-1)",
        many=False,
    )
    shown = "our_sequence_number highest_sequence_number outstanding_reply_count reply_deferred inside"

    others: Fixed[Ids]
    our_sequence_number: int = 0
    highest_sequence_number: int = 0
    outstanding_reply_count: int = 0
    reply_deferred: set[int] = set()

    def initialize(self, setup: Setup) -> None:
        self.others = tuple([j for j in setup.members if j != self.me])

    def request_cs(self) -> None:
        self.our_sequence_number = self.highest_sequence_number + 1
        self.outstanding_reply_count = len(self.others)
        j: int
        for j in self.others:
            self.out.send(j, Request(self.our_sequence_number))
        self.await_replies()

    def await_replies(self) -> None:
        if self.outstanding_reply_count == 0:
            self.enter_cs(NIL, NIL)

    def release_cs(self) -> None:
        j: int
        for j in self.others:  # not over the set, whose order is arbitrary
            if j in self.reply_deferred:
                self.out.send(j, Reply())
        self.reply_deferred = set()

    def on_request(self, j: int, m: Request) -> None:
        assert m.sequence_number < 1 << 62, "no clock gets there, and one beyond it would overflow"
        self.highest_sequence_number = max(self.highest_sequence_number, m.sequence_number)
        if self.requesting_cs and self.goes_first(j, m.sequence_number):
            self.reply_deferred.add(j)
        else:
            self.out.send(j, Reply())

    def goes_first(self, j: int, sequence_number: int) -> bool:
        """Is our request earlier than j's? Ids break ties."""
        if self.our_sequence_number == sequence_number:
            return self.me < j
        return self.our_sequence_number < sequence_number

    def on_reply(self, m: Reply) -> None:
        self.outstanding_reply_count -= 1
        self.await_replies()
