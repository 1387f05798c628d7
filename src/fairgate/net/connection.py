"""One open connection between two peers.

**Greeting.** The dialling side sends `("hello", PROTOCOL, cluster, its id, the id it wants or NIL)`. The accepting
side answers with the same, or with `("refused", why)` and closes. The dialling side sends `("ready",)`. Now the
connection is *up*, and received frames are passed on. If the cluster has a secret, both sides first prove that they
know it (secret.py). The transport decides whether to accept (`ConnectionOwner`);
this module only moves bytes.

**Writing.** Everything that one callback of the loop sends leaves in one system call: answers right after the received
frames were passed on, the rest at the end of this turn of the loop. (Sending answers early is worth it, see
docs/notes/tuning.md.) Other threads can send too (pipe.py). So without TLS, data is written directly to the socket and
not through the loop's transport, because not every loop can tell whether its transport still has data queued. The
loop's transport only reads; with a reader (reader.py), not even that after the greeting.

**Limits.** Nothing grows without bound. Frames have a size limit, a small one before the greeting is over. Data that
the other side does not read is queued: above `HIGH` bytes `on_pressure` is called, above `MOST` the connection is
closed, which is better than losing frames silently. crowd.py bounds what one principal may use in all its connections.
"""

import asyncio
import logging
import os
from typing import Any, Protocol, cast

from fairgate.core.ids import NIL
from fairgate.net.codec import LIMIT, CodecError, Frame
from fairgate.net.pipe import LARGE, NO_FRAME, Pipe
from fairgate.net.principal import NOTHING
from fairgate.net.rationed_log import RationedLog
from fairgate.net.secret import Proving
from fairgate.net.system import Wire
from fairgate.net.tls import CLOSED, explain

PROTOCOL = 1  # the version of the messages between peers; frames have their own, see codec.py
HELLO, READY, REFUSED = "hello", "ready", "refused"
HELLO_LIMIT = 1 << 10  # bytes
LOW, HIGH, MOST = 1 << 16, 1 << 18, 1 << 24  # bytes queued for the other side

log = logging.getLogger("fairgate.net")


class ConnectionOwner(Protocol):
    """What a connection needs of the transport."""

    greeting_seconds: float
    strangers_log: RationedLog
    members_log: RationedLog
    reader: Any  # None if the loop's transport reads

    def made(self, connection: "Connection") -> None:
        """It is open; nothing has been sent yet."""

    def greeted(self, connection: "Connection", frame: Frame) -> None:
        """A frame came before the connection was up."""

    receiving: bool  # frames are being passed on; a flush follows

    def begun(self, connection: "Connection") -> None:
        """Part of a large frame has arrived."""

    def filled(self, connection: "Connection") -> None:
        """More is queued than the other side reads."""

    def unsent(self, connection: "Connection") -> None:
        """It needs a flush soon."""

    def flush(self) -> None: ...

    def on_frame(self, peer: int, frame: Frame) -> None: ...

    def on_quiet(self) -> None: ...

    def on_pressure(self, peer: int, full: bool) -> None: ...

    def lost(self, connection: "Connection") -> None:
        """It has ended; `connection.why` is the reason."""


class Connection(Pipe, asyncio.Protocol):
    owner: ConnectionOwner
    link: asyncio.Transport

    def __init__(self, owner: ConnectionOwner, where: str, dial: Any = None) -> None:
        super().__init__(owner, HELLO_LIMIT)
        self.where = where  # for log messages
        self.principal = NOTHING  # what the other end has proved about itself, see principal.py
        self.proving: Proving | None = None  # until both ends have proved that they know the secret
        self.dial = dial  # the Dial that opened it; None if the other side did
        self.full = False
        self.why = ""  # the reason, once it ends
        self.settled: asyncio.Future[bool] = self.loop.create_future()  # whether the greeting succeeded
        self.gone: asyncio.Future[None] = self.loop.create_future()
        self.size = 0  # bytes in `waiting`
        self.timer: asyncio.TimerHandle | None = None
        self.closing = False  # close it as soon as everything is written
        self.forgotten = False

    # Called by the loop.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.link = cast(asyncio.Transport, transport)
        if self.forgotten:
            self.link.abort()
            return
        self.link.set_write_buffer_limits(HIGH, LOW)
        if self.link.get_extra_info("sslcontext") is None:
            self.raw = Wire(os.dup(self.link.get_extra_info("socket").fileno()))
        self.timer = self.loop.call_later(self.owner.greeting_seconds, self.too_late)
        self.owner.made(self)

    def data_received(self, data: bytes) -> None:
        owner = self.owner
        owner.receiving = True
        try:
            for frame in self.decoder.feed(data):
                if self.up:
                    owner.on_frame(self.peer, frame)
                elif not self.why:
                    owner.greeted(self, frame)
            if self.decoder.need > LARGE:
                self.frame_begun()
        except CodecError as wrong:
            self.drop(f"{NO_FRAME}{wrong}", logging.WARNING)
        finally:
            owner.receiving = False
            owner.flush()
            owner.on_quiet()
        if self.up and self.raw is not None and owner.reader is not None:
            self.link.pause_reading()
            owner.reader.add(self, self.raw.fileno())

    def frame_begun(self) -> None:
        self.owner.begun(self)

    def pause_writing(self) -> None:
        self.full = True
        self.owner.filled(self)
        if self.up:
            self.owner.on_pressure(self.peer, True)

    def resume_writing(self) -> None:
        self.full = False
        if self.up:
            self.owner.on_pressure(self.peer, False)

    def connection_lost(self, error: Exception | None) -> None:
        self.end(CLOSED if error is None else explain(error))
        self.close_raw()
        if not self.settled.done():
            self.settled.set_result(False)
        self.gone.set_result(None)
        self.owner.lost(self)

    # Called by the transport.

    def is_known(self, peer: int) -> None:
        self.peer = peer
        self.decoder.limit = LIMIT

    def is_up(self) -> None:
        self.up = True
        self.stop_timer()
        if not self.settled.done():  # it may have been cancelled together with the task that awaited it
            self.settled.set_result(True)

    def post(self, data: bytes) -> None:
        if not self.waiting:
            self.owner.unsent(self)
        self.waiting.append(data)
        self.size += len(data)
        if self.size > MOST or (self.full and self.size + self.unread() > MOST):
            self.drop(f"it does not read: more than {MOST} bytes are queued for it", logging.WARNING)

    def unread(self) -> int:
        return len(self.rest) + self.link.get_write_buffer_size()

    def flush(self) -> None:
        with self.writing:
            data = self.waiting[0] if len(self.waiting) == 1 else b"".join(self.waiting)
            self.waiting = []
            self.size = 0
            if not data or self.why or self.link.is_closing():
                return
            if self.raw is None:
                self.link.write(data)
            elif self.rest:
                self.rest += data
            else:
                self.write(data)
        if self.rest:
            self.wait_for_room()

    def wait_for_room(self) -> None:
        if self.raw is not None and self.rest:
            self.loop.add_writer(self.raw.fileno(), self.room)
            if len(self.rest) > HIGH and not self.full:
                self.pause_writing()

    def room(self) -> None:
        with self.writing:
            if self.raw is None:
                return
            if self.rest:
                self.write(self.rest)
            if not self.rest:
                self.loop.remove_writer(self.raw.fileno())
        if self.full and len(self.rest) < LOW:
            self.resume_writing()
        if self.closing and not self.rest:
            self.link.close()

    def close(self, why: str) -> None:
        """Closes it after delivering what was sent, if the other side reads."""
        self.flush()
        self.end(why)
        self.closing = True
        if not self.rest:
            self.link.close()

    def close_raw(self) -> None:
        if self.raw is not None and self.owner.reader is not None:
            self.owner.reader.remove(self.raw.fileno())
        with self.writing:
            if self.raw is not None:
                self.loop.remove_writer(self.raw.fileno())
                self.raw.close()
                self.raw = None

    def forget(self) -> None:
        """The attempt was cancelled. uvloop may have connected nevertheless, or do so later, and then never calls
        connection_lost."""
        self.forgotten = True
        self.stop_timer()
        self.close_raw()

    def drop(self, why: str, level: int = logging.DEBUG) -> None:
        """Closes it at once."""
        if not self.why:
            if level < logging.WARNING:
                log.log(level, "closed the connection with %s: %s", self.name(), why)
            else:
                rationed = self.owner.members_log if self.up else self.owner.strangers_log
                rationed.warning("closed the connection with %s: %s", self.name(), why)
        self.end(why)
        self.link.abort()

    def end(self, why: str) -> None:
        self.why = self.why or why
        self.up = False
        self.stop_timer()

    def stop_timer(self) -> None:
        if self.timer is not None:
            self.timer.cancel()

    def too_late(self) -> None:
        self.drop(f"it sent no hello within {self.owner.greeting_seconds:g} s", logging.WARNING)

    def name(self) -> str:
        return self.where if self.peer == NIL else f"peer {self.peer} at {self.where}"
