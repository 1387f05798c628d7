"""Frames: valid ones survive a round trip, whole or in pieces; anything else raises CodecError.

Hypothesis finds odd cases and shrinks them, but is slow, so most inputs come from a plain generator. `make test` runs a
sample of both, `make stress` 100,000 inputs.
"""

from __future__ import annotations

import random
from struct import Struct
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fairgate.net.codec import DEPTH, LIMIT, VERSION, CodecError, Decoder, Frame, check, encode

HEAD = Struct(">IB")  # length and version
SHORT, LONG = 50, 5_000
SHORT_MASS, LONG_MASS = 2_000, 100_000

plain = st.integers(-(1 << 63), (1 << 64) - 1) | st.text(max_size=20) | st.booleans() | st.binary(max_size=20)
frames = st.lists(
    st.recursive(plain, lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=6), max_size=4
).map(tuple)
# Valid MessagePack that is not allowed in a frame, and bytes that are not even MessagePack.
any_value = st.recursive(
    plain | st.none() | st.floats() | st.datetimes(timezones=st.timezones()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)
bodies = any_value.map(msgspec.msgpack.encode) | st.binary(max_size=60)
headed = st.tuples(bodies, st.sampled_from([VERSION, VERSION, VERSION, 0, 2, 255])).map(
    lambda made: HEAD.pack(len(made[0]) + 1, made[1]) + made[0]
)
lengths = st.integers(0, (1 << 32) - 1).map(lambda length: HEAD.pack(length, VERSION))


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """Valid frames with a few bytes changed, removed or inserted."""
    data = bytearray(b"".join(encode(frame) for frame in draw(st.lists(frames, min_size=1, max_size=2))))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(data)))
        data[at : at + draw(st.integers(0, 2))] = draw(st.binary(max_size=2))
    return bytes(data)


streams = st.lists(damaged() | headed | lengths | st.binary(max_size=40), min_size=1, max_size=2).map(b"".join)


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    ends = sorted({min(cut, len(data)) for cut in cuts} | {len(data)})
    return [data[start:end] for start, end in zip([0, *ends], ends, strict=False)]


def there_and_back(sent: list[Frame], cuts: list[int]) -> None:
    decoder = Decoder()
    data = b"".join(map(encode, sent))
    assert [frame for piece in pieces(data, cuts) for frame in decoder.feed(piece)] == sent


def nothing_but_codec_errors(data: bytes, cuts: list[int]) -> None:
    decoder = Decoder()
    why = ""
    for piece in pieces(data, cuts):
        try:
            frames = decoder.feed(piece)
        except CodecError as wrong:
            why = str(wrong)
            break
        for frame in frames:
            check(frame, DEPTH)
            assert type(frame) is tuple
            assert Decoder().feed(encode(frame)) == [frame]
    assert "\n" not in why  # it becomes one log line
    assert len(decoder.rest) <= LIMIT + len(data)


cut_lists = st.lists(st.integers(0, 200), max_size=6)
fuzz = settings(deadline=None, suppress_health_check=list(HealthCheck), database=None)


@settings(fuzz, max_examples=SHORT)
@given(st.lists(frames, max_size=2), cut_lists)
def test_frames_survive_a_round_trip(sent: list[Frame], cuts: list[int]) -> None:
    there_and_back(sent, cuts)


@settings(fuzz, max_examples=SHORT)
@given(streams, cut_lists)
def test_garbage_raises_codec_error(data: bytes, cuts: list[int]) -> None:
    nothing_but_codec_errors(data, cuts)


@pytest.mark.stress
@settings(fuzz, max_examples=LONG)
@given(st.lists(frames, max_size=2), cut_lists)
def test_frames_survive_a_round_trip_long(sent: list[Frame], cuts: list[int]) -> None:
    there_and_back(sent, cuts)


@pytest.mark.stress
@settings(fuzz, max_examples=LONG)
@given(streams, cut_lists)
def test_garbage_raises_codec_error_long(data: bytes, cuts: list[int]) -> None:
    nothing_but_codec_errors(data, cuts)


LEAVES = [0, -1, 127, 128, 1 << 32, (1 << 64) - 1, -(1 << 63), "", "a gate", "ü" * 40, True, False, b"", b"\xdd" * 9]
STRANGE = [None, 1.5, {"a": 1}, msgspec.msgpack.Ext(5, b"x"), msgspec.msgpack.Ext(-1, b"\0" * 4)]


def random_value(rng: random.Random, leaves: list[Any], depth: int = 5) -> Any:
    if depth == 0 or rng.random() < 0.6:
        return rng.choice(leaves)
    return tuple([random_value(rng, leaves, depth - 1) for _ in range(rng.randrange(4))])


def random_frame(rng: random.Random) -> Frame:
    return tuple([random_value(rng, LEAVES) for _ in range(rng.randrange(6))])


def random_garbage(rng: random.Random) -> bytes:
    kind = rng.randrange(4)
    if kind == 0:
        return rng.randbytes(rng.randrange(60))
    if kind == 1:  # well formed but not plain
        body = msgspec.msgpack.encode([random_value(rng, LEAVES + STRANGE) for _ in range(rng.randrange(5))])
    elif kind == 2:  # garbage with a valid head, mostly arrays
        body = bytes([rng.choice([0x90, 0x91, 0x93, 0xDC, 0xDD, 0xDE, 0xC4, 0xD9])]) + rng.randbytes(rng.randrange(40))
    else:
        data = bytearray(encode(random_frame(rng)) + encode(random_frame(rng)))
        for _ in range(rng.randint(1, 3)):
            at = rng.randrange(len(data) + 1)
            data[at : at + rng.randrange(3)] = rng.randbytes(rng.randrange(3))
        return bytes(data)
    return HEAD.pack(len(body) + 1, VERSION) + body


def mass(inputs: int) -> None:
    rng = random.Random(1)
    for _ in range(inputs):
        cuts = [rng.randrange(100) for _ in range(rng.randrange(4))]
        there_and_back([random_frame(rng) for _ in range(rng.randrange(3))], cuts)
        nothing_but_codec_errors(random_garbage(rng), cuts)


def test_random_inputs() -> None:
    mass(SHORT_MASS)


@pytest.mark.stress
def test_random_inputs_long() -> None:
    mass(LONG_MASS)


def nest(depth: int) -> Any:
    made: Any = ()
    for _ in range(depth - 1):
        made = (made,)
    return made


@pytest.mark.parametrize("leaf", [(), (b"the long way",)])
def test_nesting_deeper_than_the_limit_is_refused(leaf: tuple[Any, ...]) -> None:
    deepest = (*leaf, nest(DEPTH - 1))
    assert Decoder().feed(encode(deepest)) == [deepest]
    too_deep = (*leaf, nest(DEPTH))
    with pytest.raises(CodecError, match="nested more than"):
        encode(too_deep)
    body = msgspec.msgpack.encode(too_deep)
    with pytest.raises(CodecError, match="nested more than"):
        Decoder().feed(HEAD.pack(len(body) + 1, VERSION) + body)


def test_a_list_decodes_as_a_tuple() -> None:
    assert Decoder().feed(encode(([1, [b"x"]], "y"))) == [((1, (b"x",)), "y")]


@pytest.mark.parametrize(
    "value", [None, 1.5, {"a": 1}, {1}, Decoder, 1 << 64, -(1 << 63) - 1, "\ud800", bytearray(b"x")], ids=repr
)
def test_values_that_are_not_plain_cannot_be_encoded(value: object) -> None:
    with pytest.raises(CodecError):
        encode((1, (value,)))


def test_a_recursive_value_cannot_be_encoded() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(CodecError):
        encode((endless,))


def test_a_frame_must_be_a_tuple() -> None:
    for frame in (1, "x", None):
        with pytest.raises(CodecError):
            encode(frame)  # type: ignore[arg-type]


def test_frames_over_the_size_limit_are_refused() -> None:
    longest = ("x" * (LIMIT - 7),)  # version 1, array 1, head of the string 5
    data = encode(longest)
    assert Decoder().feed(data) == [longest]
    with pytest.raises(CodecError, match="at most"):
        encode(("x" * (LIMIT - 6),))
    with pytest.raises(CodecError, match="at most 100 "):
        Decoder(100).feed(encode(("x" * 100,)))


def test_an_excessive_length_is_refused_before_buffering() -> None:
    decoder = Decoder()
    with pytest.raises(CodecError, match="at most"):
        decoder.feed(HEAD.pack(LIMIT + 1, VERSION))


def test_an_array_with_a_huge_declared_size_allocates_nothing() -> None:
    body = b"\xdd\xff\xff\xff\xff\x01"
    with pytest.raises(CodecError, match="truncated"):
        Decoder().feed(HEAD.pack(len(body) + 1, VERSION) + body)


def test_decoding_byte_by_byte() -> None:
    frame = ("x" * 1000, (1, 2))
    decoder = Decoder()
    data = encode(frame) * 2
    assert [got for at in range(len(data)) for got in decoder.feed(data[at : at + 1])] == [frame, frame]


def test_another_frame_version_is_refused() -> None:
    with pytest.raises(CodecError, match="version 2"):
        Decoder().feed(HEAD.pack(2, 2) + b"\x90")
