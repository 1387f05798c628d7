"""What comes in from other peers. Messages are most of it, and each of them passes here: so this is compiled.

The engine itself is not: a user's Ctrl-C must find it where Python can tell what was done. Frames come in the engine's
own thread, where there is no Ctrl-C. `tell` is called in a user's thread too, and returns nothing that could be lost.
"""

from collections.abc import Callable
from typing import Any, Protocol

from fairgate.core.message import Message, decode
from fairgate.live.clock import clock
from fairgate.live.gate import LiveGate
from fairgate.live.monitor import Monitor
from fairgate.live.ticket import Ticket
from fairgate.net.codec import CodecError, Frame

MESSAGE = "m"


class Home(Protocol):
    """The engine, as it is seen here."""

    now: int
    lock: Monitor
    gates: dict[str, LiveGate]
    local: Any  # what its own seats say to each other

    def settle(self) -> None: ...

    def abandoned(self, gate: LiveGate, ticket: Ticket) -> None: ...


class Intake:
    def __init__(self, home: Home, others: Callable[[int, Frame], None]) -> None:
        self.home = home
        self.lock = home.lock
        self.gates = home.gates
        self.local = home.local
        self.others = others  # takes all other frames
        self.stepping = False
        self.let_in: list[tuple[LiveGate, Ticket]] = []  # and not told yet

    def on_frame(self, peer: int, frame: Frame) -> None:
        """A frame is (kind, ...); what does not fit, wherever that is found out, is nothing that a peer says."""
        try:
            if frame[0] == MESSAGE:
                _, name, dst, src, key = frame
                self.on_message(name, dst, src, decode(key))
            else:
                self.others(peer, frame)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as wrong:
            raise CodecError(f"{frame!r:.60} is nothing a peer says: {wrong}") from wrong

    def on_message(self, name: str, dst: int, src: int, msg: Message) -> None:
        """A step of the engine's, without what `with` costs."""
        self.lock.take()
        self.stepping = True
        try:
            self.home.now = clock()
            gate = self.gates.get(name)
            if gate is not None:
                gate.on_message(dst, src, msg)
            if self.local:
                self.home.settle()
        finally:
            self.stepping = False
            self.lock.give()

    def tell(self, gate: LiveGate, ticket: Ticket) -> None:
        """This one was let in. If that is by what was read, its user is told when all that was read has been taken:
        who woke up sooner would find the lock and the interpreter taken, and might enter again before somebody whose
        request lies here already."""
        if self.stepping:
            self.let_in.append((gate, ticket))
        elif not ticket.wake():
            self.home.abandoned(gate, ticket)

    def on_quiet(self) -> None:
        if self.let_in:
            let_in, self.let_in = self.let_in, []
            for gate, ticket in let_in:
                if not ticket.wake():
                    self.home.abandoned(gate, ticket)
