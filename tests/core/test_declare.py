"""Declarations: what is derived for messages, records and nodes, and which declarations are refused."""

from typing import TYPE_CHECKING, Any

import pytest

from fairgate.core.about import About
from fairgate.core.declare import HANDLERS, Fixed, Id, Ids, Moment, Option, message, node, one_of, record
from fairgate.core.ids import NIL
from fairgate.core.message import Key, Message, decode
from fairgate.core.mutex import Mutex
from fairgate.core.outbox import Collected
from fairgate.core.setup import Setup
from fairgate.core.units import NEVER


@message("test.plain", tokens=2, coordinators=1)
class Plain(Message):
    r: Id
    a: tuple[tuple[int, bool], ...]


@message()
class About2(Message):
    gate: int


@message("test.below")
class Below(About2):
    word: str
    inner: Plain


@message("test.sum")
class Sum(Message):
    a: int
    b: int
    total: Fixed[int]

    if TYPE_CHECKING:  # checkers cannot see that fixed fields are not parameters

        def __init__(self, a: int, b: int) -> None: ...

    def complete(self) -> None:
        self.total = self.a + self.b


@record
class Lease:
    owner: int
    until: Moment = NEVER
    waiting: list[int] = []
    note: Fixed[str] = "kept out of the key"


@node
class Sample(Mutex):
    about = About(name="sample", paper="", kind="", cost="", options={"documented": "somewhere else"}, symmetric=True)
    timed = True
    shown = "here=parent seen queue"

    pace: Option[int] = 7
    order: Option[str] = one_of("fifo", "lifo")
    twice: Fixed[int]
    parent: Id
    others: Ids = ()
    seen: set[int] = set()
    queue: list[tuple[int, int]] = []
    leases: dict[int, Lease] = {}
    last: list[Plain] = []
    odd: dict[str, int] = {}

    def initialize(self, setup: Setup) -> None:
        self.twice = 2 * self.pace
        self.parent = setup.root

    def request_cs(self) -> None:
        pass

    def on_plain(self, src: int, m: Plain) -> None:
        self.queue.append((src, m.r))

    def on_below(self, m: Below) -> None:
        self.parent = m.gate

    def odd_key(self) -> Key:
        return tuple(sorted(self.odd.items(), reverse=True))

    def load_odd(self, key: Key) -> None:
        self.odd = dict(key)

    def loaded(self) -> None:
        self.twice = -1


@node
class Richer(Sample):
    about = About(name="richer", paper="", kind="", cost="", literal=True)

    more: int = 3

    def on_below(self, m: Below) -> None:
        self.more = m.gate

    def on_sum(self, m: Sum) -> None:
        self.more += m.total

    def show(self) -> dict[str, Any]:
        return {"more": self.more}


@node
class Richest(Richer):
    shown = "more"


def made(cls: Any = Sample, **options: Any) -> Any:
    return cls(1, Setup((1, 2, 3), 1, root=2, options=options), Collected())


# Messages.


def test_a_message_has_a_constructor_a_key_and_counts() -> None:
    m = Plain(4, ((1, True),))
    assert m.key() == ("test.plain", 4, ((1, True),))
    assert (m.tokens(), m.coordinators()) == (2, 1)
    assert m == Plain(4, ((1, True),)) != Plain(5, ((1, True),))


def test_fields_of_a_base_come_first_and_messages_nest() -> None:
    m = Below(3, "x", Plain(4, ()))
    assert m.key() == ("test.below", 3, "x", ("test.plain", 4, ()))
    assert decode(("test.below", 3, "x", ["test.plain", 4, []])) == m


def test_a_fixed_field_is_completed_and_is_not_in_the_key() -> None:
    assert Sum(2, 3).total == 5
    assert decode(("test.sum", 2, 3)).key() == ("test.sum", 2, 3)


@pytest.mark.parametrize(
    "key",
    [
        ("test.plain", 4),
        ("test.plain", 4, (), 1),
        ("test.plain", "4", ()),
        ("test.plain", True, ()),
        ("test.plain", 1 << 63, ()),
        ("test.plain", 4.0, ()),
        ("test.plain", 4, None),
        ("test.plain", 4, ((1,),)),
        ("test.plain", 4, ((1, True, 2),)),
        ("test.plain", 4, ((1, 1),)),
        ("test.below", 3, b"x", ("test.plain", 4, ())),
        ("test.below", 3, "x", ("test.sum", 1, 2)),
        ("test.below", 3, "x", ("nothing",)),
        ("test.below", 3, "x", 7),
        (),
        ("nothing",),
    ],
)
def test_an_invalid_message_key_is_refused(key: Key) -> None:
    with pytest.raises(ValueError, match=r"not |expected"):
        decode(key)


def test_two_messages_with_one_tag_are_refused() -> None:
    with pytest.raises(ValueError, match="already in use"):
        message("test.plain")(type("Other", (Message,), {}))


# Records.


def test_a_record_key_contains_moments_as_time_left() -> None:
    lease = Lease(4)
    assert (lease.until, lease.waiting) == (NEVER, [])
    lease.until = 1_000
    assert lease.key_at(300) == (4, 700, ())  # type: ignore[attr-defined]
    again = Lease.from_key((4, 700, [5]), 2_000)  # type: ignore[attr-defined]
    assert (again.owner, again.until, again.waiting, again.note) == (4, 2_700, [5], "kept out of the key")


def test_never_stays_never() -> None:
    assert Lease.from_key(Lease(1).key_at(50), 90).until == NEVER  # type: ignore[attr-defined]


# Nodes.


def test_options_come_from_the_setup_and_defaults_from_the_declaration() -> None:
    assert (made().pace, made(pace=9).pace, made(pace=9).twice) == (7, 9, 18)
    assert (made().order, made(order="lifo").order) == ("fifo", "lifo")


def test_an_option_is_one_of_its_choices() -> None:
    with pytest.raises(ValueError, match="order must be one of fifo, lifo, not 'random'"):
        made(order="random")


def test_declared_options_are_described_with_the_documented_ones() -> None:
    assert Sample.about.options == {"documented": "somewhere else", "pace": 7, "order": ("fifo", "lifo")}
    assert Richer.about.options == {}  # literal: the options of the base class do not apply


def test_the_positions_of_ids_follow_from_the_declaration() -> None:
    assert Sample.about.ids == {"key": (4, 5), "test.plain": (1,)}


def test_every_node_gets_its_own_containers() -> None:
    one, other = made(), made()
    one.queue.append((1, 1))
    one.seen.add(4)
    assert (other.queue, other.seen) == ([], set())


def test_a_default_container_must_be_empty() -> None:
    with pytest.raises(TypeError, match="must be empty"):
        record(type("Bad", (), {"__annotations__": {"x": list[int]}, "x": [1]}))


def filled() -> Any:
    sample = made()
    sample.now = 100
    sample.seen = {5, 2}
    sample.queue = [(9, 8)]
    sample.leases = {6: Lease(1), 3: Lease(2)}
    sample.leases[3].until = 160
    sample.last = [Plain(1, ())]
    sample.odd = {"a": 1, "b": 2}
    sample.set_timer("tick", 40)
    return sample


KEY = (
    *(1, NIL, False, False, 2, (), (2, 5), ((9, 8),)),
    ((3, 2, 60, ()), (6, 1, NEVER, ())),
    (("test.plain", 1, ()),),
    (("b", 2), ("a", 1)),
    (("tick", 40),),
)


def test_a_key_contains_the_whole_state_in_the_order_of_the_declaration() -> None:
    assert filled().key() == KEY


def test_load_restores_the_state_even_from_a_key_that_went_through_json() -> None:
    again = made()
    again.now = 1_000
    again.load(as_lists(KEY))
    assert again.key() == KEY
    assert (again.leases[3].until, again.timers, again.twice) == (1_060, {"tick": 1_040}, -1)


def as_lists(key: Key) -> Key:
    def inner(value: Any) -> Any:
        return [inner(one) for one in value] if isinstance(value, tuple) else value

    return tuple(inner(value) for value in key)


def test_a_key_of_another_version_or_length_is_refused() -> None:
    with pytest.raises(ValueError, match="version"):
        made().load((2, *KEY[1:]))
    with pytest.raises(ValueError, match="unpack"):
        made().load(KEY[:-1])


def test_a_handler_with_two_parameters_gets_the_source_too() -> None:
    sample = made()
    sample.on_message(3, Plain(8, ()))
    sample.on_message(3, Below(7, "", Plain(8, ())))
    assert (sample.queue, sample.parent) == ([(3, 8)], 7)


def test_a_message_without_a_handler_is_refused() -> None:
    with pytest.raises(TypeError, match=r"Sample has no handler for Sum, only .*: add on_sum\(self, m: Sum\)"):
        made().on_message(3, Sum(1, 2))


def test_two_handlers_of_one_message_are_refused() -> None:
    def on_another(self: Any, m: Plain) -> None: ...

    with pytest.raises(TypeError, match="on_plain and on_another both handle Plain"):
        node(type("Torn", (Sample,), {"on_another": on_another, "__annotations__": {}}))


@pytest.mark.parametrize("name", ["on_release", "on_crash", "on_start"])
def test_a_handler_with_the_name_of_a_drivers_input_is_refused(name: str) -> None:
    def handler(self: Any, src: int, m: Plain) -> None: ...

    with pytest.raises(TypeError, match=f"^Taken.{name} handles Plain, but .* rename .* to {name}_message$"):
        node(type("Taken", (Mutex,), {name: handler, "__annotations__": {}}))


def test_an_input_can_be_overridden_and_a_handler_named_after_its_message() -> None:
    def on_crash(self: Any, peer: int) -> None: ...

    def on_crash_message(self: Any, m: Plain) -> None: ...

    members = {"on_crash": on_crash, "on_crash_message": on_crash_message, "__annotations__": {}}
    assert [handler.name for handler in HANDLERS[node(type("Free", (Mutex,), members))]] == ["on_crash_message"]


def test_show_returns_copies() -> None:
    sample = filled()
    assert sample.show() == {"here": 2, "seen": [2, 5], "queue": ((9, 8),)}


def test_a_subclass_adds_fields_and_handlers_and_overrides_handlers() -> None:
    richer = made(Richer)
    richer.on_message(2, Plain(8, ()))
    richer.on_message(2, Below(7, "", Plain(8, ())))
    richer.on_message(2, Sum(1, 2))
    assert (richer.queue, richer.parent, richer.more) == ([(2, 8)], 2, 10)
    assert len(richer.key()) == len(made().key()) + 1


def test_a_hand_written_method_is_not_derived_for_the_class_or_its_subclasses() -> None:
    assert made(Richer).show() == made(Richest).show() == {"more": 3}


def test_an_undeclared_attribute_cannot_be_set() -> None:
    with pytest.raises(AttributeError):
        Plain(1, ()).other = 3  # type: ignore[attr-defined]
