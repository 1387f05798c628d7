"""Frames from and to other peers. Every message of a gate passes through here, so this module is compiled.

The engine itself is not: Ctrl-C in a user's thread must interrupt it where Python knows what has been done. Most frames
arrive in the engine's own thread, which Ctrl-C never interrupts. In a user's thread (net/reader.py), Ctrl-C is not
raised either while only compiled code runs. If it strikes all the same, the gate of that frame gets a new view.
"""

from collections import deque
from collections.abc import Callable, Coroutine
from threading import get_ident
from typing import Any, Protocol

from fairgate.core.ids import SEAT_BITS
from fairgate.core.message import Message, decode
from fairgate.live.engine_lock import EngineLock
from fairgate.live.gate import LiveGate
from fairgate.live.links import Links
from fairgate.live.ticket import Ticket
from fairgate.live.uplink import Uplink
from fairgate.net.codec import CodecError, Frame
from fairgate.net.system import clock, once

MESSAGE = "m"


class TrafficOwner(Protocol):
    """What this module needs of the engine."""

    lock: EngineLock
    gates: dict[str, LiveGate]
    local: Any  # messages between its own seats

    def deliver_local(self) -> None: ...

    def abandoned(self, gate: LiveGate, ticket: Ticket) -> None: ...

    def mistake(self, wrong: Exception) -> None: ...

    def from_outside(self, work: Coroutine[Any, Any, None]) -> None: ...

    def repair(self, gate: LiveGate) -> Coroutine[Any, Any, None]: ...


class Traffic(Uplink):
    def __init__(self, owner: TrafficOwner, others: Callable[[int, Frame], None]) -> None:
        super().__init__()
        self.owner = owner
        self.lock = owner.lock
        self.gates = owner.gates
        self.local = owner.local
        self.others = others  # handles all other frames
        self.links: Links | None = None  # set as soon as our identity is known
        self.stepping = False
        self.quiet_thread = 0  # the thread that wakes users, outside of a step
        self.let_in: deque[tuple[LiveGate, Ticket]] = deque()  # granted, but not woken yet

    # In.

    def on_frame(self, peer: int, frame: Frame) -> None:
        """Handles a frame (kind, ...) in the engine's thread. CodecError if it is not valid."""
        try:
            if frame[0] == MESSAGE:
                _, name, dst, src, key = frame
                msg = decode(key)
                self.lock.take()  # a step, without the cost of `with`
                try:
                    self.on_message(peer, self.gates.get(name), dst, src, msg)
                finally:
                    self.lock.give()
            elif self.links is None or not self.links.take(peer, frame):
                self.others(peer, frame)
        except Exception as wrong:
            raise nothing(frame, wrong) from wrong

    def on_frame_elsewhere(self, peer: int, frame: Frame) -> bool:
        """The same in a user's thread. False if only the engine's thread can handle the frame."""
        try:
            if frame[0] != MESSAGE:
                return False
            _, name, dst, src, key = frame
            msg = decode(key)
            gate = self.gates.get(name)
            if self.lock.wanted:
                self.lock.step_aside()
            for _ in once(self.lock.lock):
                try:
                    self.on_message(peer, gate, dst, src, msg)
                except Exception:
                    raise
                except BaseException:
                    if gate is not None:
                        gate.broken = Ticket()  # no request in particular
                        self.owner.from_outside(self.owner.repair(gate))
                    raise
        except Exception as wrong:
            raise nothing(frame, wrong) from wrong
        return True

    def on_message(self, peer: int, gate: LiveGate | None, dst: int, src: int, msg: Message) -> None:
        """ValueError if the sender is not a seat of this peer: nobody may speak for others."""
        if src >> SEAT_BITS != peer:
            raise ValueError(f"seat {src} is not one of peer {peer}")
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
        """Notifies a user that its request was granted. During the handling of received messages this waits until all
        of them are handled. A user woken earlier would only contend for the lock and the interpreter, and might enter
        again before a request that has already arrived."""
        if self.stepping:
            self.let_in.append((gate, ticket))
        else:
            self.wake(gate, ticket)

    def on_quiet(self) -> None:
        if not self.let_in:
            return
        self.quiet_thread = get_ident()
        try:
            while self.let_in:
                try:
                    gate, ticket = self.let_in.popleft()
                except IndexError:  # two threads read, and the other one took it
                    break
                self.wake(gate, ticket)
        finally:
            self.quiet_thread = 0

    def wake(self, gate: LiveGate, ticket: Ticket) -> None:
        """Wakes a user. If that raises, which it should not, the others are woken all the same."""
        try:
            is_there = ticket.wake()
        except Exception as wrong:
            self.owner.mistake(wrong)
        else:
            if not is_there:
                self.owner.abandoned(gate, ticket)

    # Out.

    def send(self, host: int, gate: str, dst: int, src: int, msg: Message) -> None:
        if host == self.me:
            self.local.append((gate, dst, src, msg))
        else:
            assert self.links is not None
            self.links.send(host, (MESSAGE, gate, dst, src, msg.key()))


def nothing(frame: Frame, wrong: Exception) -> CodecError:
    """Whatever a frame causes costs its sender the connection, and nothing else."""
    return CodecError(f"{frame!r:.60} is not a valid message: {type(wrong).__name__}: {wrong!s:.200}")
