"""Ricart and Agrawala, "An Optimal Algorithm for Mutual Exclusion in Computer Networks" (1981).

Theory of operation. Whoever wants in asks all the others and enters when all have answered. A node
that wants in as well, or is inside, keeps its answer back from requests later than its own; the order
is that of Lamport's clock, then of the ids. No request ends before every answer to it has come, so a
late message can never be taken for one of the next request: messages may overtake each other.

Names are the paper's; its Requesting_Critical_Section is `requesting_cs`.
"""

from typing import Any

from fairgate.core.about import About
from fairgate.core.ids import NIL
from fairgate.core.message import Key, Message, register
from fairgate.core.mutex import Mutex
from fairgate.core.outbox import Outbox
from fairgate.core.setup import Setup


class Request(Message):
    """REQUEST(sequence_number): the sender wants in."""

    __slots__ = ("sequence_number",)
    tag = "ra.request"

    def __init__(self, sequence_number: int) -> None:
        self.sequence_number = sequence_number

    def key(self) -> Key:
        return (self.tag, self.sequence_number)


class Reply(Message):
    """REPLY: the sender lets you go first."""

    __slots__ = ()
    tag = "ra.reply"

    def key(self) -> Key:
        return (self.tag,)


register(Request, Reply)


class RicartAgrawala(Mutex):
    about = About(
        name="ricart_agrawala",
        paper="Ricart and Agrawala 1981",
        kind="permission",
        cost="2(N-1)",
        many=False,
    )

    def __init__(self, me: int, setup: Setup, out: Outbox) -> None:
        Mutex.__init__(self, me, setup, out)
        self.others = tuple([j for j in setup.members if j != me])
        self.our_sequence_number = 0
        self.highest_sequence_number = 0
        self.outstanding_reply_count = 0
        self.reply_deferred: set[int] = set()

    def request_cs(self) -> None:
        self.our_sequence_number = self.highest_sequence_number + 1
        self.outstanding_reply_count = len(self.others)
        for j in self.others:
            self.out.send(j, Request(self.our_sequence_number))
        self.await_replies()

    def await_replies(self) -> None:
        if self.outstanding_reply_count == 0:
            self.enter_cs(NIL, NIL)

    def release_cs(self) -> None:
        for j in self.others:  # not over the set: effects keep the members' order
            if j in self.reply_deferred:
                self.out.send(j, Reply())
        self.reply_deferred = set()

    def on_message(self, src: int, msg: Message) -> None:
        if isinstance(msg, Request):
            self.on_request(src, msg)
        elif isinstance(msg, Reply):
            self.on_reply(msg)

    def on_request(self, j: int, m: Request) -> None:
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

    def key(self) -> Key:
        return (
            self.version,
            self.request,
            self.requesting_cs,
            self.inside,
            self.our_sequence_number,
            self.highest_sequence_number,
            self.outstanding_reply_count,
            tuple(sorted(self.reply_deferred)),
        )

    def load(self, key: Key) -> None:
        self.check_version(key)
        (
            _,
            self.request,
            self.requesting_cs,
            self.inside,
            self.our_sequence_number,
            self.highest_sequence_number,
            self.outstanding_reply_count,
            deferred,
        ) = key
        self.reply_deferred = set(deferred)

    def show(self) -> dict[str, Any]:
        return {
            "our_sequence_number": self.our_sequence_number,
            "highest_sequence_number": self.highest_sequence_number,
            "outstanding_reply_count": self.outstanding_reply_count,
            "reply_deferred": sorted(self.reply_deferred),
            "inside": self.inside,
        }
