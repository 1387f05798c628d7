"""Space-time diagrams of small runs, compared character by character."""

from __future__ import annotations

from fairgate.core.layers import MakeNode
from fairgate.core.setup import Setup
from fairgate.protocols.fair_k import FairK
from fairgate.scenario.recorded import RecordedNetwork
from fairgate.trace.journal import Step
from fairgate.trace.spacetime import describe, plain, spacetime

MS = 1_000_000


class Kept:
    """A journal in memory."""

    def __init__(self) -> None:
        self.steps: list[Step] = []

    def step(self, step: Step) -> None:
        self.steps.append(step)


def small_run(n: int = 4, make: MakeNode = FairK) -> list[Step]:
    """A run with two tokens: 1 and 2 enter, 3 and 4 wait, 3 gives up, 2 crashes."""
    kept = Kept()
    network = RecordedNetwork(kept, make, Setup(tuple(range(1, n + 1)), k=2), True)  # type: ignore[arg-type]
    network.acquire(1)
    network.acquire(2)
    network.acquire(4)
    for index in (0, 1, 0):
        network.now += 3 * MS
        network.deliver(index)
    network.acquire(3)
    network.now += 1500 * MS
    network.release(1)
    network.now += 2 * MS
    network.deliver(1)
    network.cancel(3)
    network.crash(2)
    return kept.steps


def drawn(*arguments: object, **options: object) -> str:
    return "\n".join(["", *spacetime(*arguments, **options), ""])  # type: ignore[arg-type]


PICTURE = """
│ idle  ┆ waiting  ┃ inside
             1     2     3     4
 6 0.000     ●     │     │     │  1 asks; 1 enters slot 0 fence 1
 7           ┃     ●     │     │  2 asks; 2 enters slot 1 fence 1
 8           ┃     ┃     │     ◇  4 asks
 9 0.003     ┃◀────╂─────┼─────┤  request(4)
10 0.006     ┠─────╂─────┼────▶┆  token_locations((4,2), 1)
11 0.009     ↺     ┃     │     ┆  child(4)
12           ┃     ┃     ◇     ┆  3 asks
13 1.509     ○     ┃     ┆     ┆  1 leaves
14 1.511     ├─────╂─────┼────▶●  token(0, 1); 4 enters slot 0 fence 2
15           │     ┃     x     ┃  3 cancels
16           │     ✗     │     ┃  2 crashes
"""


def test_the_picture() -> None:
    assert drawn(small_run()) == PICTURE


def test_the_picture_in_ascii() -> None:
    assert (
        drawn(small_run(), first=9, last=14, ascii_only=True)
        == """
| idle  : waiting  # inside
             1     2     3     4
 9 0.003     #<----+-----+-----|  request(4)
10 0.006     #-----+-----+---->:  token_locations((4,2), 1)
11 0.009     @     #     |     :  child(4)
12           #     #     ?     :  3 asks
13 1.509     o     #     :     :  1 leaves
14 1.511     |-----+-----+---->*  token(0, 1); 4 enters slot 0 fence 2
"""
    )


def test_only_the_chosen_nodes_are_drawn_in_the_given_order() -> None:
    """The arrow of a message from a hidden column has no shaft, and its text names the sender."""
    assert (
        drawn(small_run(), nodes=(4, 2))
        == """
│ idle  ┆ waiting  ┃ inside
             4     2
 7 0.000     │     ●  2 asks; 2 enters slot 1 fence 1
 8           ◇     ┃  4 asks
10 0.006    ▶┆     ┃  1 -> 4 token_locations((4,2), 1)
14 1.511    ▶●     ┃  1 -> 4 token(0, 1); 4 enters slot 0 fence 2
16           ┃     ✗  2 crashes
"""
    )


LIST = """
 6 0.000  1 asks; 1 enters slot 0 fence 1
 7        2 asks; 2 enters slot 1 fence 1
 8        4 asks
 9 0.003  4 -> 1 request(4)
10 0.006  1 -> 4 token_locations((4,2), 1)
"""


def test_a_narrow_page_shows_a_list() -> None:
    assert drawn(small_run(), last=10, width=50) == LIST


def test_many_nodes_are_shown_as_a_list() -> None:
    many = [Step(0, node, "acquire", arguments=(1,)) for node in range(13)]
    assert drawn(many, last=3, width=300).startswith("\n│ idle")
    assert drawn(many, width=300).startswith("\n 2 0.000  0 asks\n")


def test_no_line_is_wider_than_the_page() -> None:
    for width in (40, 63, 64, 80, 120):
        lines = list(spacetime(small_run(), width=width))
        assert max(map(len, lines)) <= width
    assert any(line.endswith("…") for line in spacetime(small_run(), width=63))


def test_crash_reset_and_loss() -> None:
    steps = [
        Step(0, 2, "crash"),
        Step(1000, 3, "message", source=1, message=("x.hi",)),
        Step(1000, 1, "message", source=2, message=("x.hi",)),
        Step(2000, 2, "reset"),
        Step(3000, 2, "start", effects=(("granted", 1, -1, -1),)),
        Step(4000, 2, "timer", arguments=("lease",), effects=(("lost", 1, "late"),)),
        Step(5000, 1, "acquire", arguments=(2,)),
    ]
    assert (
        drawn(steps)
        == """
│ idle  ┆ waiting  ┃ inside
               1     2     3
2 0.000000     │     ✗     │  2 crashes
3 0.000001     ├──────────▶│  hi()
4              │◀────╴     │  hi()
5 0.000002     │     R     │  2 restarts without its memory
6 0.000003     │     ●     │  2 starts; 2 enters
7 0.000004     │     ✗     │  2 timer lease; 2 loses its permit: late
8 0.000005     ◇     │     │  1 asks
"""
    )


def test_no_steps_give_no_picture() -> None:
    assert list(spacetime([])) == []


def test_events_are_described() -> None:
    def said(event: str, *arguments: object) -> str:
        return describe(Step(0, 1, event, arguments=arguments))

    assert said("timer", "retry") == "1 timer retry"
    assert said("suspect", 2, "T") == "1 suspects 2 (T)"
    assert said("trust", 2, "S") == "1 trusts 2 (S)"
    assert said("dead", 2) == "1 hears that 2 crashed"
    assert said("join", 2) == "1 joins through 2"
    assert said("view", 7, (1, 2)) == "1 has view 7 of (1,2)"
    assert said("leave") == "1 says that it leaves"
    assert said("load", (1, 2), (1,)) == "1 is loaded with a state"
    assert describe(Step(0, 1, "acquire", effects=(("granted", 1, -1, -1),))) == "1 asks; 1 enters"
    assert describe(Step(0, 1, "release", effects=(("note", "odd"),))) == "1 leaves; [odd]"


def test_a_nested_message_is_shortened_too() -> None:
    assert (
        plain(("channel.data", 5, ("fk.token_locations", (1, (2, 3)), 0))) == "data(5, token_locations((1,(2,3)), 0))"
    )
