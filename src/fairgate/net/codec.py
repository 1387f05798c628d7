"""Frames: what peers say to each other, as bytes.

    length (4 bytes, big-endian)   of all that follows
    version (1 byte)
    body                           MessagePack: one array

A frame is a tuple of plain values: integers from -2^63 to 2^64-1, strings, booleans, bytes, and tuples of
these, at most `DEPTH` deep. A list is taken for a tuple. Nothing else is ever sent or taken: no float, no None, no map.
That is what a message's `key()` is made of.

Whatever is wrong, with what is to be sent or with what came, is a `CodecError`. After one a stream is lost:
nobody can say where the next frame begins.
"""

from typing import Any

import msgspec

from fairgate.net.system import headed

VERSION = 1
LIMIT = 1 << 20  # bytes of a frame without its length
DEPTH = 32  # tuples within tuples
HEAD_BYTES, LENGTH_BYTES = 5, 4

Frame = tuple[Any, ...]


class CodecError(ValueError):
    """Not a frame: says why, in one line."""


def nested(depth: int) -> Any:
    """The type of a frame. A type of MessagePack cannot contain itself, hence the loop."""
    value: Any = int | str | bool
    for _ in range(depth - 1):
        value = int | str | bool | tuple[value, ...]
    return tuple[value, ...]


# msgspec can make and check tuples by itself, four times as fast as `tupled`, but not where strings and bytes both may
# stand. Frames with bytes in them are few, so they go the long way.
read_fast = msgspec.msgpack.Decoder(nested(DEPTH)).decode
read_any = msgspec.msgpack.Decoder().decode
write = msgspec.msgpack.Encoder().encode


def encode(frame: Frame, limit: int = LIMIT) -> bytes:
    check(frame, DEPTH)
    try:
        body: bytes = write(frame)
    except (ValueError, OverflowError) as wrong:  # half of a surrogate pair; a number too large
        raise CodecError(f"cannot be sent: {wrong}") from wrong
    length = len(body) + 1
    if length > limit:
        raise CodecError(f"a frame of {length} bytes: at most {limit} are allowed")
    return headed(VERSION, body)


def check(value: Any, depth: int) -> None:
    """That a tuple is plain all the way down: better the sender's error than a closed connection."""
    if depth == 0:
        raise CodecError(f"more than {DEPTH} tuples within each other")
    if type(value) is not tuple and type(value) is not list:
        raise CodecError(f"cannot be sent: a {type(value).__name__}, {value!r:.60}")
    for part in value:
        kind = type(part)
        if kind is not int and kind is not str and kind is not bool and kind is not bytes:
            check(part, depth - 1)


class Decoder:
    """Bytes in pieces of any size; frames as soon as they are whole."""

    def __init__(self, limit: int = LIMIT) -> None:
        self.limit = limit
        self.rest = bytearray()  # begins with a frame that is not whole
        self.need = HEAD_BYTES  # no use to look at the rest before it is as long

    def feed(self, data: bytes) -> list[Frame]:
        """The frames that are whole now. A CodecError takes those of the same piece with it."""
        if self.rest:
            self.rest += data
            if len(self.rest) < self.need:
                return []
            data = bytes(self.rest)
            self.rest = bytearray()
        frames: list[Frame] = []
        start = 0
        end = len(data)
        self.need = HEAD_BYTES
        while end - start >= HEAD_BYTES:
            length = data[start] << 24 | data[start + 1] << 16 | data[start + 2] << 8 | data[start + 3]
            self.check_head(length, data[start + 4])
            stop = start + LENGTH_BYTES + length
            if stop > end:
                self.need = stop - start
                break
            frames.append(decode_body(data[start + HEAD_BYTES : stop]))
            start = stop
        if start < end:
            self.rest += data[start:]
        return frames

    def check_head(self, length: int, version: int) -> None:
        """Before anything is kept for it: a length that is a lie costs no memory."""
        if version != VERSION:
            raise CodecError(f"version {version}, this is {VERSION}")
        if length > self.limit:
            raise CodecError(f"a frame of {length} bytes: at most {self.limit} are allowed")
        if length < 2:
            raise CodecError("an empty frame")


def decode_body(body: bytes) -> Frame:
    try:
        frame: Frame = read_fast(body)
    except (ValueError, RecursionError):
        return decode_slowly(body)
    return frame


def decode_slowly(body: bytes) -> Frame:
    """A frame with bytes in it; or not a frame, and then why not."""
    try:
        value = read_any(body)
    except (ValueError, RecursionError) as wrong:
        raise CodecError(f"garbage: {wrong}") from wrong
    return tupled(value, DEPTH)


def tupled(value: Any, depth: int) -> Frame:
    if depth == 0:
        raise CodecError(f"more than {DEPTH} tuples within each other")
    if type(value) is not list:
        raise CodecError(f"a {type(value).__name__} where only plain values can stand")
    return tuple([part if type(part) in (int, str, bool, bytes) else tupled(part, depth - 1) for part in value])
