"""Encodes and decodes frames, the units that peers send each other.

    length (4 bytes, big-endian)   of everything that follows
    version (1 byte)
    body                           MessagePack: one array

A frame is a tuple of plain values: integers from -2^63 to 2^64-1, strings, booleans, bytes, and tuples of these, nested
at most `DEPTH` deep. A list counts as a tuple. Nothing else is sent or accepted: no floats, no None, no maps. A
message's `key()` consists of the same values.

Every problem, in encoding and in decoding, is a `CodecError`. After one, the stream cannot be used any more, because
the start of the next frame is unknown.
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
    """Something is not a valid frame; the message says why, in one line."""


def nested(depth: int) -> Any:
    """The type of a frame, for msgspec. Types cannot be recursive, hence the loop."""
    value: Any = int | str | bool
    for _ in range(depth - 1):
        value = int | str | bool | tuple[value, ...]
    return tuple[value, ...]


# msgspec can build and check tuples itself, four times as fast as `tupled`, but not where both strings and bytes are
# allowed. Frames with bytes are rare, so they take the slow path.
read_fast = msgspec.msgpack.Decoder(nested(DEPTH)).decode
read_any = msgspec.msgpack.Decoder().decode
write = msgspec.msgpack.Encoder().encode


def encode(frame: Frame, limit: int = LIMIT) -> bytes:
    check(frame, DEPTH)
    try:
        body: bytes = write(frame)
    except (ValueError, OverflowError) as wrong:  # half of a surrogate pair; a number too large
        raise CodecError(f"cannot encode the frame: {wrong}") from wrong
    length = len(body) + 1
    if length > limit:
        raise CodecError(f"a frame of {length} bytes: at most {limit} are allowed")
    return headed(VERSION, body)


def check(value: Any, depth: int) -> None:
    """CodecError unless all values are plain: an error at the sender is better than a closed connection."""
    if depth == 0:
        raise CodecError(f"tuples are nested more than {DEPTH} deep")
    if type(value) is not tuple and type(value) is not list:
        raise CodecError(f"cannot encode a {type(value).__name__}: {value!r:.60}")
    for part in value:
        kind = type(part)
        if kind is not int and kind is not str and kind is not bool and kind is not bytes:
            check(part, depth - 1)


class Decoder:
    """Takes bytes in pieces of any size, and returns frames as soon as they are complete."""

    def __init__(self, limit: int = LIMIT) -> None:
        self.limit = limit
        self.rest = bytearray()  # the start of an incomplete frame
        self.need = HEAD_BYTES  # how long `rest` must be before it is worth looking at

    def feed(self, data: bytes) -> list[Frame]:
        """The frames that are complete now. On a CodecError, complete frames of the same piece are lost too."""
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
        """Called before anything is buffered, so that a false length costs no memory."""
        if version != VERSION:
            raise CodecError(f"frame version {version}, expected {VERSION}")
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
    """Decodes a frame that contains bytes, or raises a CodecError that says what is wrong."""
    try:
        value = read_any(body)
    except (ValueError, RecursionError) as wrong:
        raise CodecError(f"invalid MessagePack: {wrong}") from wrong
    return tupled(value, DEPTH)


def tupled(value: Any, depth: int) -> Frame:
    if depth == 0:
        raise CodecError(f"tuples are nested more than {DEPTH} deep")
    if type(value) is not list:
        raise CodecError(f"a {type(value).__name__} is not allowed in a frame")
    return tuple([part if type(part) in (int, str, bool, bytes) else tupled(part, depth - 1) for part in value])
