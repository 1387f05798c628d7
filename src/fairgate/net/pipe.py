"""The bytes of one connection, read and written in whichever thread: what runs for every message, so it is compiled.

A thread can write (`write_now`) if nothing waits before it: then the loop's thread need not wake up. What is read in
another thread than the loop's (reader.py) is passed on there, or left to the loop's.
"""

import asyncio
import logging
from abc import abstractmethod
from collections.abc import Callable
from typing import Any

from fairgate.core.ids import NIL
from fairgate.net.codec import CodecError, Decoder, Frame
from fairgate.net.system import Latch, Wire
from fairgate.net.tls import explain

EMPTY = bytearray()
NO_FRAME = "it sent no frame: "


class Pipe:
    def __init__(self, owner: Any, limit: int) -> None:
        self.owner = owner
        self.peer = NIL  # until the greeting
        self.up = False
        self.loop = asyncio.get_running_loop()
        self.link: Any = None  # the loop's own transport, as soon as there is one
        self.decoder = Decoder(limit)
        self.raw: Wire | None = None  # None: there is TLS above it
        self.writing = Latch()
        self.waiting: list[bytes] = []  # for the loop's next flush
        self.rest = EMPTY  # what the socket did not take: it comes first

    def write_now(self, data: bytes) -> bool:
        """From any thread. False: it has to go the long way, by the loop."""
        with self.writing:
            if self.waiting or self.rest or not self.up or self.raw is None:
                return False
            self.write(data)
            if self.rest:
                self.later(self.wait_for_room)
            return True

    def write(self, data: bytes | bytearray) -> None:
        """What the socket takes; the rest is kept."""
        assert self.raw is not None
        try:
            sent = self.raw.give(data)
        except BlockingIOError:
            sent = 0
        except OSError:  # it is gone, as whoever reads from it is told
            sent = len(data)
        self.rest = bytearray(data[sent:]) if sent < len(data) else EMPTY

    def read(self, elsewhere: Callable[[int, Frame], bool] | None) -> bool:
        """`elsewhere`: who takes frames in this thread; None: it is the loop's. False: nothing comes any more."""
        assert self.raw is not None
        try:
            data = self.raw.take()
            if not data:
                self.later(self.link.abort)
                return False
            for frame in self.decoder.feed(data):
                if not self.up:
                    break
                if elsewhere is None:
                    self.owner.on_frame(self.peer, frame)
                elif not elsewhere(self.peer, frame):
                    self.later(self.pass_on, frame)
        except BlockingIOError:  # somebody else has read it
            return True
        except OSError as wrong:
            self.later(self.drop, explain(wrong))
        except CodecError as wrong:
            self.later(self.drop, f"{NO_FRAME}{wrong}", logging.WARNING)
        except BaseException:  # Ctrl-C in a user's thread: the rest of what was read is lost, so the connection must be
            self.later(self.drop, "reading was broken off")
            raise
        else:
            return True
        return False

    def pass_on(self, frame: Frame) -> None:
        """In the loop's thread, what was read in another."""
        try:
            if self.up:
                self.owner.on_frame(self.peer, frame)
        except CodecError as wrong:
            self.drop(f"{NO_FRAME}{wrong}", logging.WARNING)

    def later(self, what: Callable[..., object], *args: Any) -> None:
        self.loop.call_soon_threadsafe(what, *args)

    # In the loop's thread.

    @abstractmethod
    def wait_for_room(self) -> None:
        """The rest is written when the socket takes more."""

    @abstractmethod
    def drop(self, why: str, level: int = logging.DEBUG) -> None:
        """End it at once."""
