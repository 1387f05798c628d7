"""What comes from other peers and what goes to them. Most of it are messages, each of which passes here: so this is
compiled.

The engine itself is not: a user's Ctrl-C must find it where Python can tell what was done. Most frames come in the
engine's own thread, where there is no Ctrl-C. In a user's (net/reader.py) there is none either as long as nothing runs
but compiled code; and if one comes all the same, the gate that the frame was for gets a new view.
"""

from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, Protocol

from fairgate.core.message import Message, decode
from fairgate.live.engine_lock import EngineLock
from fairgate.live.gate import LiveGate
from fairgate.live.links import Links
from fairgate.live.ticket import Ticket
from fairgate.live.uplink import Uplink
from fairgate.net.codec import CodecError, Frame
from fairgate.net.system import clock

MESSAGE = "m"
NONSENSE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


class TrafficOwner(Protocol):
    """The engine, as it is seen here."""

    lock: EngineLock
    gates: dict[str, LiveGate]
    local: Any  # what its own seats say to each other

    def deliver_local(self) -> None: ...

    def abandoned(self, gate: LiveGate, ticket: Ticket) -> None: ...

    def from_outside(self, work: Coroutine[Any, Any, None]) -> None: ...

    def repair(self, gate: LiveGate) -> Coroutine[Any, Any, None]: ...


class Traffic(Uplink):
    def __init__(self, owner: TrafficOwner, others: Callable[[int, Frame], None]) -> None:
        super().__init__()
        self.owner = owner
        self.lock = owner.lock
        self.gates = owner.gates
        self.local = owner.local
        self.others = others  # takes all other frames
        self.links: Links | None = None  # until it is known who we are
        self.stepping = False
        self.let_in: deque[tuple[LiveGate, Ticket]] = deque()  # and not told yet

    # In.

    def on_frame(self, peer: int, frame: Frame) -> None:
        """A frame is (kind, ...); what does not fit, wherever that is found out, is nothing that a peer says."""
        try:
            if frame[0] == MESSAGE:
                _, name, dst, src, key = frame
                msg = decode(key)
                self.lock.take()  # a step of the engine's, without what `with` costs
                try:
                    self.on_message(self.gates.get(name), dst, src, msg)
                finally:
                    self.lock.give()
            else:
                self.others(peer, frame)
        except NONSENSE as wrong:
            raise nothing(frame, wrong) from wrong

    def on_frame_elsewhere(self, peer: int, frame: Frame) -> bool:
        """The same in the thread of a user. False: it must be the engine's."""
        try:
            if frame[0] != MESSAGE:
                return False
            _, name, dst, src, key = frame
            msg = decode(key)
            gate = self.gates.get(name)
            if self.lock.wanted:
                self.lock.step_aside()
            with self.lock.lock:
                try:
                    self.on_message(gate, dst, src, msg)
                except Exception:
                    raise
                except BaseException:
                    if gate is not None:
                        gate.broken = Ticket()  # no request in particular
                        self.owner.from_outside(self.owner.repair(gate))
                    raise
        except NONSENSE as wrong:
            raise nothing(frame, wrong) from wrong
        return True

    def on_message(self, gate: LiveGate | None, dst: int, src: int, msg: Message) -> None:
        self.stepping = True
        try:
            self.now = clock()
            if gate is not None:
                gate.on_message(dst, src, msg)
            if self.local:
                self.owner.deliver_local()
        finally:
            self.stepping = False

    def tell(self, gate: LiveGate, ticket: Ticket) -> None:
        """This one was let in. If that is by what was read, its user is told when all that was read has been taken:
        who woke up sooner would find the lock and the interpreter taken, and might enter again before somebody whose
        request lies here already."""
        if self.stepping:
            self.let_in.append((gate, ticket))
        elif not ticket.wake():
            self.owner.abandoned(gate, ticket)

    def on_quiet(self) -> None:
        while self.let_in:
            try:
                gate, ticket = self.let_in.popleft()
            except IndexError:  # two threads read, and the other one has told it
                return
            if not ticket.wake():
                self.owner.abandoned(gate, ticket)

    # Out.

    def send(self, host: int, gate: str, dst: int, src: int, msg: Message) -> None:
        if host == self.me:
            self.local.append((gate, dst, src, msg))
        else:
            assert self.links is not None
            self.links.send(host, (MESSAGE, gate, dst, src, msg.key()))


def nothing(frame: Frame, wrong: BaseException) -> CodecError:
    return CodecError(f"{frame!r:.60} is nothing a peer says: {wrong}")
