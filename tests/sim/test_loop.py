"""Twin modules behave alike: inner loop, random streams, overtakes, metrics and quantiles, in pure Python and in C.

The pure Python twins are loaded from their files beside the compiled ones, and both get the same input.
"""

from __future__ import annotations

import importlib.util
import random
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fairgate
from fairgate.core.keyed import Gated
from fairgate.core.message import Key, Message
from fairgate.core.node import Node
from fairgate.core.numbers import COMPILED
from fairgate.core.outbox import Outbox
from fairgate.core.setup import Setup
from fairgate.sim import loop, metrics, overtakes, quantiles, stream
from fairgate.sim.events import ACQUIRE, DELIVER, PLANNED, RELEASE


def plain_twin(name: str) -> ModuleType:
    """The module fairgate.<name> loaded from its .py file, even if a compiled one exists."""
    path = Path(fairgate.__file__).parent / (name.replace(".", "/") + ".py")
    spec = importlib.util.spec_from_file_location(f"plain_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PLAIN_LOOP, PLAIN_STREAM = plain_twin("sim.loop"), plain_twin("sim.stream")
PLAIN_METRICS, PLAIN_QUANTILES = plain_twin("sim.metrics"), plain_twin("sim.quantiles")
PLAIN_OVERTAKES = plain_twin("sim.overtakes")
two_twins = pytest.mark.skipif(not COMPILED, reason="nothing is compiled here, so there is only one twin")

NODES = 3
HEAP, EXITS = "push", "push_exit"
Seen = list[tuple[Any, ...]]


class Word(Message):
    __slots__ = ("number",)
    tag = "test.word"

    def __init__(self, number: int) -> None:
        self.number = number

    def key(self) -> Key:
        return (self.tag, self.number)


class Other(Word):
    __slots__ = ()
    tag = "test.other"


class Listener(Node):
    """Records what it receives, and answers every third word with another one to the next node."""

    seen: Seen

    def on_message(self, src: int, msg: Message) -> None:
        assert isinstance(msg, Word | Letter)
        self.seen.append(("heard", self.me, src, msg.number))
        if isinstance(msg, Letter):
            if msg.number % 3:
                self.out.send((self.me + 1) % NODES, Letter(msg.gate, msg.number - 1))
        elif msg.number % 3 == 0:
            self.out.send((self.me + 1) % NODES, Other(msg.number + 1))


class Letter(Gated):
    """A message about a gate; Listener passes it on as another message about the same gate."""

    __slots__ = ("number",)
    tag = "test.letter"

    def __init__(self, gate: int, number: int) -> None:
        Gated.__init__(self, gate)
        self.number = number

    def key(self) -> Key:
        return (self.tag, self.gate, self.number)


class Driven:
    """One twin, and a record of what it did."""

    def __init__(
        self, base: Any, fixed: int = -1, plain: bool = False, turns: tuple[int, int, int] | None = None
    ) -> None:
        self.seen: Seen = []
        seen = self.seen

        class Recorded(base):  # type: ignore[misc]
            def handle(self, kind: int, dst: int, src: int, msg: Message | None) -> None:
                seen.append((self.now, kind, dst, src, None if msg is None else msg.key()))
                if src % 5 == 4:  # some events cause further events, at the same time or later
                    self.push(self.now + src % 2, ACQUIRE, dst, src + 1, None)

            def release(self, seat: int, request: int) -> None:
                self.handle(RELEASE, seat, request, None)

            def carry(self, dst: int, msg: Message) -> None:
                self.push(self.now + dst, DELIVER, dst, self.acting, msg)

        self.loop = Recorded(NODES)
        setup = Setup(tuple(range(NODES)))
        for me in range(NODES):
            node = Listener(me, setup, self.loop)
            node.seen = seen
            self.loop.place(me, node)
        if turns is not None:
            self.loop.take_turns(*turns)
        self.loop.fixed = fixed
        self.loop.plain = plain

    def do_plan(self, delay: int, src: int) -> None:
        self.loop.push(self.loop.now + delay, PLANNED, 0, src, None)

    def do_write(self, dst: int, gate: int, number: int) -> None:
        self.loop.send(dst, Letter(gate, number))

    def do(self, operation: tuple[Any, ...]) -> None:
        kind, *rest = operation
        getattr(self, f"do_{kind}")(*rest)

    def do_push(self, delay: int, dst: int, src: int, number: int | None = None) -> None:
        msg = None if number is None else Word(number)
        self.loop.push(self.loop.now + delay, ACQUIRE if msg is None else DELIVER, dst, src, msg)

    def do_push_exit(self, delay: int, dst: int, src: int) -> None:
        self.loop.push_exit(self.loop.now + delay, dst, src)

    def do_send(self, dst: int, number: int) -> None:
        self.loop.send(dst, Word(number))

    def do_run(self, most: int) -> None:
        self.seen.append(("more", self.loop.run(most)))

    def do_clear(self) -> None:
        self.loop.clear()

    def state(self) -> tuple[Any, ...]:
        driven = self.loop
        counts = (driven.now, driven.events, driven.pushed, driven.size(), driven.sent_total())
        under_way = sorted(msg.key() for msg in driven.under_way())
        return (*counts, driven.sent_by_tag(), list(driven.loads()), under_way, self.seen)


def operations(messages: bool) -> st.SearchStrategy[list[tuple[Any, ...]]]:
    """Random operations; with `messages`, some messages are pushed straight into the heap."""
    node, src, word = st.integers(0, NODES - 1), st.integers(0, 20), st.integers(0, 30)
    pushes = st.tuples(st.sampled_from((HEAP, EXITS)), st.integers(0, 6), node, src)
    heavy = st.tuples(st.just(HEAP), st.integers(0, 6), node, src, word) if messages else pushes
    sends = st.tuples(st.just("send"), node, word)
    runs = st.tuples(st.just("run"), st.integers(0, 8))
    return st.lists(st.one_of(pushes, heavy, sends, runs, st.just(("clear",))), max_size=60)


def compare(steps: list[tuple[Any, ...]], **how: Any) -> None:
    twins = [Driven(loop.Loop, **how), Driven(PLAIN_LOOP.Loop, **how)]
    for step in [*steps, ("run", 1_000)]:
        for twin in twins:
            twin.do(step)
        assert twins[0].state() == twins[1].state()


@two_twins
@settings(max_examples=150, deadline=None, derandomize=True)
@given(operations(messages=True))
def test_twins_agree_when_messages_have_different_delays(steps: list[tuple[Any, ...]]) -> None:
    compare(steps)


@two_twins
@settings(max_examples=150, deadline=None, derandomize=True)
@given(operations(messages=False), st.integers(0, 4), st.booleans())
def test_twins_agree_when_messages_have_equal_latency(steps: list[tuple[Any, ...]], fixed: int, plain: bool) -> None:
    """With equal latency, messages are only ever sent, and all of them go into their lane."""
    compare(steps, fixed=fixed, plain=plain)


@st.composite
def turned(draw: st.DrawFn) -> list[tuple[Any, ...]]:
    node, src = st.integers(0, NODES - 1), st.integers(0, 20)
    pushes = st.tuples(st.sampled_from((HEAP, EXITS)), st.integers(0, 6), node, src)
    plans = st.tuples(st.just("plan"), st.integers(0, 9), src)
    letters = st.tuples(st.just("write"), node, st.integers(0, NODES - 1), st.integers(0, 9))
    words = st.tuples(st.just("send"), node, st.integers(0, 30))
    runs = st.tuples(st.just("run"), st.integers(0, 8))
    return draw(st.lists(st.one_of(pushes, plans, letters, words, runs, st.just(("clear",))), max_size=60))


@two_twins
@settings(max_examples=300, deadline=None, derandomize=True)
@given(turned(), st.integers(0, 4), st.booleans(), st.sampled_from(((NODES, 0, 1), (NODES, 0, 2), (NODES, 1, 2))))
def test_twins_agree_when_gates_take_turns(
    steps: list[tuple[Any, ...]], fixed: int, plain: bool, turns: tuple[int, int, int]
) -> None:
    """If only some of the gates take turns, events of the others stay in their queues."""
    compare(steps, fixed=fixed, plain=plain, turns=turns)


@two_twins
def test_twins_agree_when_queues_grow() -> None:
    """Past 64 events the compiled heap and ring buffers are reallocated, wherever a ring buffer begins at that time."""
    rng = random.Random(1)
    steps: list[tuple[Any, ...]] = []
    for _ in range(4):
        steps += [(HEAP, rng.randint(0, 9_999), 0, 0, rng.randint(0, 30)) for _ in range(1_500)]
        steps += [rng.choice([("send", 1, 3 * i + 1), (EXITS, 10_000 + i, 1, 0)]) for i in range(3_000)]
        steps.append(("run", 2_500))
    twins = [Driven(loop.Loop, fixed=7_000), Driven(PLAIN_LOOP.Loop, fixed=7_000)]
    for twin in twins:
        for step in [*steps, ("run", 100_000)]:
            twin.do(step)
    assert twins[0].state() == twins[1].state()
    assert twins[0].loop.size() == 0


# Each twin alone.

LOOPS = {"in use": loop.Loop, "plain": PLAIN_LOOP.Loop}
STREAMS = {"in use": stream.Stream, "plain": PLAIN_STREAM.Stream}


@pytest.mark.parametrize("name", LOOPS)
@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.lists(st.tuples(st.integers(0, 9), st.sampled_from((HEAP, EXITS, "send"))), max_size=80))
def test_events_are_ordered_by_time_then_lane_then_order_of_pushing(name: str, events: list[tuple[int, str]]) -> None:
    driven = Driven(LOOPS[name], fixed=4)
    expected = []
    last = 0
    for number, (time, where) in enumerate(events):
        if where == "send":
            driven.do((where, 0, number))
            expected.append((4, 0, number))
        elif where == EXITS and last <= time:
            last = time
            driven.do((where, time, 0, 5 * number))
            expected.append((time, 1, number))
        else:  # an exit that is out of order goes to the heap, which comes last
            driven.do((where, time, 0, 5 * number))
            expected.append((time, 2, number))
    driven.loop.run(1_000)
    came = [(now, src // 5 if said is None else said[1]) for now, _, _, src, said in driven.seen]
    assert came == [(time, number) for time, _, number in sorted(expected)]


@pytest.mark.parametrize("name", LOOPS)
def test_run_returns_whether_events_are_left(name: str) -> None:
    driven = Driven(LOOPS[name])
    for time in range(3):
        driven.do((HEAP, time, 0, 0))
    assert driven.loop.run(2)
    assert driven.loop.size() == 1
    assert not driven.loop.run(2)
    assert driven.loop.events == 3


@pytest.mark.parametrize("name", LOOPS)
def test_a_cleared_loop_can_be_used_again(name: str) -> None:
    driven = Driven(LOOPS[name], fixed=5)
    for step in ((HEAP, 5, 0, 0, 1), (EXITS, 5, 0, 0), ("send", 0, 1)):
        driven.do(step)
    assert driven.loop.size() == 3
    driven.loop.clear()
    assert driven.loop.size() == 0
    assert list(driven.loop.under_way()) == []
    driven.do((EXITS, 1, 2, 0))
    assert not driven.loop.run(10)
    assert driven.seen == [(1, RELEASE, 2, 0, None)]


@pytest.mark.parametrize("name", LOOPS)
def test_a_message_to_a_node_that_does_not_exist_is_stray(name: str) -> None:
    """In compiled code an unchecked number would be an invalid pointer."""
    base: Any = LOOPS[name]
    lost: list[int] = []

    class Stray(base):  # type: ignore[misc]
        def stray(self, dst: int, msg: Message) -> None:
            lost.append(dst)

    for fixed in (-1, 1):
        driven = Stray(NODES)
        for me in range(NODES):
            driven.place(me, Listener(me, Setup((0, 1, 2)), Outbox()))
        driven.fixed = fixed
        driven.send(-1, Word(1))
        driven.send(NODES, Word(1))
        assert driven.size() == 0
    assert lost == [-1, NODES] * 2


# Random numbers.

Draw = Callable[[Any], float]
DRAWS: dict[str, Draw] = {
    "unit": lambda drawn: drawn.unit(),
    "below": lambda drawn: drawn.below(10),
    "below a second": lambda drawn: drawn.below(10**9 + 1),
    "exponential": lambda drawn: drawn.exponential(2e9),
}


@two_twins
@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.text(max_size=10), st.lists(st.sampled_from(sorted(DRAWS)), max_size=40), st.integers(0, 600))
def test_streams_agree(seed: str, draws: list[str], ahead: int) -> None:
    """Bit for bit, for any sequence of draws, and across the blocks of 624 words that the compiled twin computes."""
    compiled, plain = stream.Stream(seed), PLAIN_STREAM.Stream(seed)
    for _ in range(ahead):
        assert compiled.unit() == plain.unit()
    for draw in draws:
        assert DRAWS[draw](compiled) == DRAWS[draw](plain)


@pytest.mark.parametrize("name", STREAMS)
def test_streams_stay_in_their_ranges(name: str) -> None:
    drawn = STREAMS[name]("ranges")
    units = [drawn.unit() for _ in range(2_000)]
    assert 0.0 <= min(units) < 0.01
    assert 0.99 < max(units) < 1.0
    assert {drawn.below(4) for _ in range(200)} == {0, 1, 2, 3}
    stays = [drawn.exponential(5e9) for _ in range(20_000)]
    assert min(stays) >= 0
    assert sum(stays) / len(stays) == pytest.approx(5e9, rel=0.03)


@pytest.mark.parametrize("name", STREAMS)
def test_a_seed_determines_its_stream(name: str) -> None:
    first, again, other = (STREAMS[name](seed) for seed in ("a", "a", "b"))
    row = [first.unit() for _ in range(5)]
    assert row == [again.unit() for _ in range(5)]
    assert row != [other.unit() for _ in range(5)]


# Overtakes.


def walked(twin: Any, moves: list[int], front: bool) -> list[tuple[int, ...]]:
    """What the twin has counted after each move. Even moves join; odd ones enter or, seldom, drop any that waits."""
    line = twin.Waiters()
    waiting: list[int] = []
    seen: list[tuple[int, ...]] = []
    for move in moves:
        if move % 2 == 0 or not waiting:
            waiting.append(line.join())
        else:
            number = waiting.pop(move % len(waiting[:3] if front else waiting))
            (line.drop if move % 7 == 0 else line.enter)(number)
        seen.append((line.joined, line.overtakes, line.max_displacement, line.max_overtaken))
    return seen


@two_twins
@pytest.mark.parametrize("front", [True, False], ids=["fair", "unfair"])
@pytest.mark.parametrize("joins", [0, 300, 1_500])
def test_overtakes_agree(joins: int, front: bool) -> None:
    """Also when the compiled twin forgets what has left, and when it needs more space."""
    moves = [0] * joins + [random.Random(joins).randrange(1_000_000) for _ in range(6_000)]
    assert walked(overtakes, moves, front) == walked(PLAIN_OVERTAKES, moves, front)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.lists(st.integers(0, 1_000), max_size=100))
def test_overtakes_are_those_of_the_definition(moves: list[int]) -> None:
    """Pairs of an entry and an earlier request that still waits, counted one by one."""
    line = overtakes.Waiters()
    waiting: list[int] = []
    overtaken: dict[int, int] = {}
    pairs = most = 0
    for move in moves:
        if move % 2 == 0 or not waiting:
            waiting.append(line.join())
            overtaken[waiting[-1]] = 0
            continue
        number = waiting.pop(move % len(waiting))
        if move % 7 == 0:
            line.drop(number)
            continue
        line.enter(number)
        for other in [other for other in waiting if other < number]:
            overtaken[other] += 1
            pairs += 1
        most = max(most, overtaken[number])
    assert (line.overtakes, line.max_overtaken) == (pairs, most)


# Metrics.


def measured(twin: Any) -> tuple[Any, ...]:
    waits = (twin.counted, twin.wait_total, twin.wait_max, sorted(twin.kept_waits()))
    return (twin.entries, *waits, list(twin.node_maxima()), twin.node_totals())


@two_twins
@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    st.lists(st.none() | st.tuples(st.integers(0, NODES - 1), st.integers(0, 2**50)), max_size=40), st.integers(0, 4)
)
def test_measures_agree(entries: list[tuple[int, int] | None], warmup: int) -> None:
    """An entry of None ends the warm-up."""
    twins = [metrics.Metrics(NODES, warmup), PLAIN_METRICS.Metrics(NODES, warmup)]
    for entry in entries:
        for twin in twins:
            twin.restart() if entry is None else twin.entered(*entry)
        assert measured(twins[0]) == measured(twins[1])


# Quantiles.


@two_twins
@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    st.lists(st.integers(0, 5) | st.integers(0, 2**62), max_size=60),
    st.lists(st.floats(0, 1) | st.sampled_from([0.5, 0.9, 0.99, 1.0]), max_size=4),
)
def test_quantiles_agree(values: list[int], shares: list[float]) -> None:
    assert quantiles.quantiles(values, shares) == PLAIN_QUANTILES.quantiles(values, shares)
