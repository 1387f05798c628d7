"""Untrusted input: for every message, decoding an invalid key raises ValueError and never crashes the process."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairgate.core.declare import merged_fields
from fairgate.core.derive import Field
from fairgate.core.kinds import Kind
from fairgate.core.message import KINDS, Message, decode
from fairgate.core.outside import checked_shape
from fairgate.registry import LAYERS, PROTOCOLS

_ = [dict(PROTOCOLS), dict(LAYERS)]  # imports all of them, which registers all messages
TAGS = sorted(tag for tag, kind in KINDS.items() if kind.__module__.startswith("fairgate.") and merged_fields(kind))

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.binary(max_size=3),
    lambda inner: st.lists(inner, max_size=4) | st.lists(inner, max_size=4).map(tuple),
    max_leaves=8,
)


def parts(tag: str) -> list[Field]:
    return [field for field in merged_fields(KINDS[tag]) if field.is_state]


def valid(kind: Kind) -> st.SearchStrategy[Any]:
    """Valid values for a field of this kind."""
    if kind.base is tuple and kind.parts:
        if kind.any_length:
            return st.lists(valid(kind.parts[0]), max_size=4).map(tuple)
        return st.tuples(*[valid(part) for part in kind.parts])
    if kind.base is bool:
        return st.booleans()
    if kind.base is int:
        return st.integers(0, (1 << 64) - 1) if "place" in kind.marks else st.integers(-(1 << 63), (1 << 63) - 1)
    if kind.is_declared:
        return st.just(("ch.ack", 3))
    return st.text(max_size=3) if kind.base is str else st.just(1)


@pytest.mark.parametrize("tag", TAGS)
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_an_arbitrary_value_in_one_field_is_refused_or_makes_a_valid_message(tag: str, data: st.DataObject) -> None:
    fields = [data.draw(valid(field.kind)) for field in parts(tag)]
    fields[data.draw(st.integers(0, len(fields) - 1))] = data.draw(anything)
    try:
        message = decode((tag, *fields))
    except ValueError:
        return
    assert decode(message.key()) == message


@pytest.mark.parametrize("tag", TAGS)
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_decoding_a_valid_key_gives_a_message_with_that_key(tag: str, data: st.DataObject) -> None:
    fields = [data.draw(valid(field.kind)) for field in parts(tag)]
    try:
        message = decode((tag, *fields))
    except ValueError:  # it must contain a message other than an Ack, or its `complete()` has refused the fields
        assert any(field.kind.is_declared for field in parts(tag)) or hasattr(KINDS[tag], "complete")
        return
    assert message.key() == (tag, *fields)
    assert decode((tag, *as_lists(fields))) == message


def as_lists(value: Any) -> Any:
    return [as_lists(one) for one in value] if isinstance(value, tuple | list) else value


@pytest.mark.parametrize("tag", TAGS)
@pytest.mark.parametrize("change", [-1, 1])
def test_too_few_or_too_many_fields_are_refused(tag: str, change: int) -> None:
    with pytest.raises(ValueError, match="not "):
        decode((tag, *[1] * (len(parts(tag)) + change)))


@given(anything)
def test_the_shape_of_any_key_accepts_only_keys(value: Any) -> None:
    try:
        taken = checked_shape(value, "k")
    except ValueError:
        return
    assert hash(taken) == hash(checked_shape(as_lists(value), "k"))


def test_a_deeply_nested_key_is_refused() -> None:
    deep: Any = 1
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(ValueError, match="nest more than"):
        decode(("rg.epoch", 1, [1], [0], deep, -1, True, 0, 1))


def test_every_kind_of_message_is_declared() -> None:
    undeclared = [tag for tag, kind in KINDS.items() if kind.key is Message.key]
    assert undeclared == []
