"""Reads and writes the bytes of one connection, in any thread. This runs for every message, so it is compiled.

Any thread can write directly (`write_now`) if nothing is queued, so that the loop's thread need not wake up. Frames
read in another thread (reader.py) are handled there, or passed to the loop's thread.
"""

import asyncio
import logging
from abc import abstractmethod
from collections.abc import Callable
from typing import Any

from fairgate.core.ids import NIL
from fairgate.net.codec import CodecError, Decoder, Frame
from fairgate.net.system import Latch, Wire, once
from fairgate.net.tls import explain

EMPTY = bytearray()
NO_FRAME = "it sent an invalid frame: "
LARGE = 1 << 14  # bytes of a frame; most are far smaller


class Pipe:
    def __init__(self, owner: Any, limit: int) -> None:
        self.owner = owner
        self.peer = NIL  # until the greeting
        self.up = False
        self.loop = asyncio.get_running_loop()
        self.link: Any = None  # the loop's transport, once connected
        self.decoder = Decoder(limit)
        self.raw: Wire | None = None  # None with TLS
        self.writing = Latch()
        self.waiting: list[bytes] = []  # for the loop's next flush
        self.rest = EMPTY  # what the socket did not accept: goes out first

    def write_now(self, data: bytes) -> bool:
        """Writes from any thread. False if the data has to be sent by the loop instead."""
        written = False
        for _ in once(self.writing):
            if not self.waiting and not self.rest and self.up and self.raw is not None:
                self.write(data)
                written = True
                if self.rest:
                    self.later(self.wait_for_room)
        return written

    def write(self, data: bytes | bytearray) -> None:
        """Writes what the socket accepts and keeps the rest."""
        assert self.raw is not None
        try:
            sent = self.raw.give(data)
        except BlockingIOError:
            sent = 0
        except OSError:  # the connection is gone; the reading side reports that
            sent = len(data)
        self.rest = bytearray(data[sent:]) if sent < len(data) else EMPTY

    def read(self, elsewhere: Callable[[int, Frame], bool] | None) -> bool:
        """Reads and handles frames, with `elsewhere` in a user's thread (None in the loop's). False at the end."""
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
            if self.decoder.need > LARGE:
                self.later(self.frame_begun)
        except BlockingIOError:  # another thread has read it
            return True
        except OSError as wrong:
            self.later(self.drop, explain(wrong))
        except CodecError as wrong:
            self.later(self.drop, f"{NO_FRAME}{wrong}", logging.WARNING)
        except BaseException:  # Ctrl-C in a user's thread: data is lost, so the connection must end
            self.later(self.drop, "reading was interrupted")
            raise
        else:
            return True
        return False

    def pass_on(self, frame: Frame) -> None:
        """Handles a frame in the loop's thread that was read in another."""
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
        """Writes the rest as soon as the socket accepts more."""

    @abstractmethod
    def frame_begun(self) -> None:
        """Part of a large frame has arrived."""

    @abstractmethod
    def drop(self, why: str, level: int = logging.DEBUG) -> None:
        """Closes the connection at once."""
