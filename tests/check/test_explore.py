"""The checker: exact counts for complete cases, and violations with their paths. Mutants are in tests/mutants."""

from __future__ import annotations

from array import array
from collections import deque
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fairgate.check.case import Case
from fairgate.check.counterexample import Counterexample, command_line, seed_for
from fairgate.check.explore import CheckReport, Explorer, FoundViolation, explore
from fairgate.check.liveness import Graph
from fairgate.check.model import Action, Model, State
from fairgate.core.numbers import COMPILED
from fairgate.core.units import SECOND
from fairgate.registry import make_node
from fairgate.scenario.run import run_scenario
from fairgate.trace.journal import read
from fairgate.trace.replay import replay

LEASE = {"lease": 3 * SECOND}
WIDE = {"lease": 3 * SECOND, "drift": 1_000_000}  # the root waits twice as long as the client
ASKS = {"reentry": 0}  # holders of an idle token make requests like every other node
ONCE = {"reentry": 1}  # they may enter once more before they have to
MOVES = {"reign": 1}  # the Line moves on as often as it can
CHASED = {"reign": 1, "chase": 0}  # and every request that has to follow it is entered for its node
QUICK = 30_000  # states: what plain Python can explore within a test

# (case, states, transitions, depth), all complete and without a violation. If a count changes, so has the protocol.
SMALL = (
    (Case("naimi_trehel", requests=2), 1_530, 3_113, 23),
    (Case("naimi_trehel", nodes=4), 1_476, 3_352, 19),
    (Case("fair_k", k=2, requests=2), 2_323, 6_302, 37),
    (Case("fair_k", k=2, requests=2, cancels=2), 24_293, 86_233, 37),
    (Case("fair_k", requests=2), 10_806, 29_285, 33),
    (Case("fair_k", nodes=4, k=2), 10_552, 33_522, 27),
    (Case("fair_k_bounded", requests=2, options=ASKS), 23_276, 58_000, 36),
    (Case("fair_k_bounded", requests=2, options=ONCE), 19_396, 48_423, 39),
    (Case("fair_k_bounded", k=2, requests=2, options=ASKS), 31_686, 88_290, 36),
    (Case("fair_k_bounded", k=2, requests=2, options=ONCE), 6_219, 17_029, 37),
    (Case("fair_k_bounded", k=2, requests=2, cancels=1, options=ASKS), 185_058, 606_791, 36),
    (Case("fair_k_bounded", k=2, requests=2, cancels=2, options=ONCE), 74_074, 267_903, 37),
    (Case("fair_k_bounded", nodes=4, k=2, options=ASKS), 41_050, 133_390, 28),
    (Case("fair_k_bounded", nodes=4, k=2, options=ONCE), 8_820, 27_622, 27),
    (Case("fair_k_bounded", k=2, requests=3, options=ONCE), 77_389, 213_285, 55),
    (Case("one_line"), 458, 808, 16),
    (Case("one_line", k=2), 1_328, 2_754, 17),
    (Case("one_line", k=2, cancels=1), 4_392, 10_096, 17),
    (Case("one_line", k=2, cancels=1, options=CHASED), 19_086, 50_130, 23),
    (Case("one_line", requests=2, options={"ahead": 0}), 2_434, 4_372, 31),
    (Case("one_line", nodes=4, k=2, options={"ahead": 0}), 2_814, 6_490, 18),
    (Case("one_line", nodes=4, k=2, options={"ahead": 0, "reign": 1}), 7_011, 14_260, 23),
    (Case("one_line", k=2, requests=2, options={"ahead": 0, "reign": 1}), 67_050, 126_016, 33),
    (Case("one_line", requests=2), 110_680, 313_888, 35),
    (Case("one_line", requests=2, options=CHASED), 258_943, 553_789, 47),
    (Case("one_line", nodes=2, k=2, requests=3), 94_067, 319_962, 34),
    (Case("one_line", nodes=2, requests=3, cancels=1), 22_940, 61_690, 33),
    (Case("one_line", nodes=4), 7_665, 16_618, 22),
    (Case("one_line", nodes=4, options=CHASED), 15_483, 26_536, 29),
    (Case("one_line", nodes=4, k=2), 115_155, 328_123, 27),
    (Case("one_line", nodes=4, k=3), 35_550, 92_020, 22),
    (Case("bv95", k=2), 291, 602, 14),
    (Case("bv95", k=2, requests=2), 4_865, 11_442, 27),
    (Case("bv95", requests=2, again=True), 1_822, 3_828, 20),
    (Case("bv95", requests=2, again=True, cancels=1, options={"cache": "sorted"}), 52_266, 114_460, 27),
    (Case("raymond"), 2_879, 9_070, 19),
    (Case("raymond", k=2), 11_614, 41_406, 19),
    (Case("ricart_agrawala"), 2_879, 9_070, 19),  # Raymond's algorithm with k=1 is this one
    (Case("ricart_agrawala", requests=2), 44_833, 146_799, 37),
    (Case("suzuki_kasami"), 727, 2_080, 16),
    (Case("suzuki_kasami", requests=2), 62_103, 272_637, 31),
    (Case("srimani_reddy"), 699, 2_004, 16),
    (Case("srimani_reddy", requests=2), 48_141, 197_522, 31),
    (Case("srimani_reddy", k=2), 4_415, 12_338, 19),
    (Case("srimani_reddy", k=2, cancels=1), 14_935, 46_881, 19),
    (Case("raymond_tree", requests=2), 1_004, 2_055, 22),
    (Case("raymond_tree", nodes=4), 1_104, 2_525, 21),
    (Case("raymond_tree", nodes=4, options={"tree": "line"}), 1_144, 2_629, 23),
    (Case("raymond_tree", nodes=4, options={"tree": "star"}), 1_049, 2_351, 21),
    (Case("raymond_tree", nodes=4, requests=2), 13_954, 35_663, 31),
    (Case("maekawa"), 2_053, 5_731, 21),
    (Case("centralised", requests=2), 869, 1_800, 25),
    (Case("centralised", k=2, requests=2), 4_623, 12_127, 25),
    (Case("raymond_fd"), 2_879, 9_070, 19),  # without crashes it is the same as Raymond's
    (Case("raymond_fd", nodes=2, requests=2, crashes=1), 1_413, 2_028, 19),
    (Case("raymond_fd", crashes=1), 287_960, 909_926, 24),
    (Case("leased", nodes=2, ticks=5, options=LEASE), 2_457, 4_904, 30),
    (Case("leased", nodes=2, ticks=4, crashes=1, options=LEASE), 3_768, 7_211, 26),
    (Case("leased", nodes=3, ticks=2, options=LEASE), 3_958, 8_854, 25),
)
LARGE = (
    (Case("fair_k", nodes=5, k=2), 599_982),
    (Case("fair_k", nodes=4, requests=2), 1_059_739),
    (Case("fair_k_bounded", k=2, requests=3, options=ASKS), 240_876),
    (Case("fair_k_bounded", nodes=4, k=2, requests=2, options=ONCE), 622_140),
    (Case("fair_k_bounded", nodes=5, k=2, options=ASKS), 1_302_110),
    (Case("one_line", nodes=4, k=2, options={**MOVES, "ahead": 2}), 138_777),
    (Case("one_line", nodes=4, k=2, options={**MOVES, "patience": 0}), 158_106),
    (Case("bv95", nodes=4, requests=2, again=True, options={"cache": "sorted"}), 1_523_356),
    (Case("maekawa", requests=2), 875_462),
    (Case("raymond_fd", k=2, crashes=1), 1_611_764),
)


def name_of(value: Any) -> str | None:
    return command_line(value).removeprefix("fairgate check ").replace(" ", "_") if isinstance(value, Case) else None


@pytest.mark.parametrize(("case", "states", "transitions", "depth"), SMALL, ids=name_of)
def test_the_counts_of_a_small_case_are_pinned(case: Case, states: int, transitions: int, depth: int) -> None:
    if states > QUICK and not COMPILED:
        pytest.skip("too long for plain Python")
    report = explore(case)
    assert_good(report)
    assert (report.states, report.transitions, report.depth, report.cyclic) == (states, transitions, depth, 0)


@pytest.mark.stress
@pytest.mark.skipif(not COMPILED, reason="too long for plain Python")
@pytest.mark.parametrize(("case", "states"), LARGE, ids=name_of)
def test_the_state_count_of_a_large_case_is_pinned(case: Case, states: int) -> None:
    report = explore(case)
    assert_good(report)
    assert report.states == states


@pytest.mark.parametrize("case", [case for case, states, *_ in SMALL if states < QUICK], ids=name_of)
def test_fifo_channels_never_add_states(case: Case) -> None:
    report = explore(replace(case, network="fifo"))
    assert_good(report)
    assert report.states <= explore(case).states


def assert_good(report: CheckReport) -> None:
    assert report.violations == ()
    assert report.complete
    assert not report.interrupted


# Violations and their paths.

BROKEN = {
    "the paper's Raymond hangs": (Case("raymond_fd_literal", nodes=2, crashes=1), "liveness"),
    "it hangs with three nodes too": (Case("raymond_fd_literal", crashes=2), "liveness"),
    "a duplicated message makes a second coordinator": (Case("fair_k", network="dup"), "coordinator"),
    "a duplicated token is counted twice": (Case("raymond_tree", network="dup"), "tokens"),
    "a duplicated token lets two nodes in": (Case("srimani_reddy", k=2, network="dup"), "slot"),
    "a duplicated token comes to a node that is inside": (Case("bv95", k=2, network="dup"), "assertion"),
    "a node waits for a lost message": (Case("fair_k", network="lossy"), "liveness"),
    "a crash breaks a queue": (Case("fair_k", k=2, crashes=1), "liveness"),
    "a lost request is not sent again": (
        Case("leased", nodes=2, ticks=4, network="lossy", options=WIDE),
        "liveness",
    ),
    "the case sets an option": (
        Case("fair_k", network="dup", options={"parent_on_child": False}),
        "coordinator",
    ),
}


def found(case: Case) -> Counterexample:
    explorer = Explorer(case)
    report = explorer.run()
    assert not report.complete
    (violation,) = report.violations
    return Counterexample(explorer.model, violation)


@pytest.mark.parametrize("name", BROKEN)
def test_a_violation_is_found_and_shown(name: str, tmp_path: Path) -> None:
    case, what = BROKEN[name]
    way = found(case)
    assert way.violation.what.split(":")[0] == what
    assert_replayable(way, tmp_path / "way.ndjson")
    assert_same_states(way)
    text = way.scenario()
    title = f"# {way.violation.what}\n# The shortest path to it, found by fairgate check {case.protocol}"
    assert text.startswith(title)
    assert run_scenario(text, make_node) == text
    assert next(iter(way.picture())) == "│ idle  ┆ waiting  ┃ inside"


def assert_replayable(way: Counterexample, path: Path) -> None:
    way.write_journal(path)
    header, steps = read(path)
    assert (header.driver, header.protocol) == ("check", way.model.case.protocol)
    assert list(replay(path, make_node(header.protocol))) == list(steps)


def assert_same_states(way: Counterexample) -> None:
    """The real nodes end in exactly the states that the model predicts."""
    model, state = way.model, way.model.first()
    for action in way.violation.path:
        state = following(model, state, action)
    keys = [model.things[number][1] for number in state[: model.n]]
    assert keys == [node.key() for node in way.reenactment.nodes.values()]


def following(model: Model, state: State, wanted: Action) -> State:
    (after,) = [after for action, after, _ in model.successors(state) if action == wanted]
    return after


def test_the_shortest_path_is_pinned() -> None:
    way = found(Case("raymond_fd_literal", nodes=2, crashes=1))
    assert way.violation.what == "liveness: nothing moves any more, and nodes [0] wait"
    assert way.violation.path == (("acquire", 0, 1, ()), ("crash", 1, None, ()), ("suspect", 0, (1, "T"), ()))
    assert way.commands() == ["acquire 0", "crash 1", "suspect 0 1 T"]
    assert list(way.picture())[1:] == [
        "             0     1",
        "10 0.000     ◇     │  0 asks",
        "11           ┆     ✗  1 crashes",
        "12           !        0 suspects 1 (T); [the detecting node told itself nothing]",
    ]


def test_lost_messages_are_listed_below_the_picture() -> None:
    way = found(Case("fair_k", nodes=2, network="lossy"))
    last = list(way.picture())[-1]
    assert last.startswith("after line ")
    assert last.endswith(": 1 -> 0 fk.request(1) is lost")
    assert way.commands()[-1] == "drop 1->0 fk.request"


def test_a_reset_is_in_the_journal_and_the_failed_step_in_the_picture(tmp_path: Path) -> None:
    way = found(Case("fair_k", resets=1))
    assert way.violation.what == "assertion: a turn came to a node that never asked for one (node 1)"
    assert_replayable(way, tmp_path / "way.ndjson")
    assert [step.event for step in way.reenactment.kept.steps][-2:] == ["reset", "start"]
    assert list(way.picture())[-1].endswith("token(0, 0)")
    with pytest.raises(ValueError, match="a scenario has no resets"):
        way.scenario()


def test_clocks_may_not_differ_by_more_than_a_lease_allows(tmp_path: Path) -> None:
    way = found(Case("leased", nodes=2, ticks=5, skew=1, options=LEASE))
    assert way.violation.what == "k: 2 inside, k is 1 (node 1 came last)"
    assert_replayable(way, tmp_path / "way.ndjson")
    assert_same_states(way)
    last, but_one = way.reenactment.kept.steps[-1], way.reenactment.kept.steps[-2]
    assert (but_one.node, but_one.now, last.node, last.now) == (0, 4 * SECOND, 1, 3 * SECOND)
    with pytest.raises(ValueError, match="a scenario has only one clock"):
        way.scenario()


def test_a_scenario_can_express_overtaking(tmp_path: Path) -> None:
    """A command picks the oldest message of its kind. To deliver a newer one, the older must be moved behind it."""
    model = Model(Case("suzuki_kasami", requests=2))
    way = Counterexample(model, FoundViolation("k: not at all", first_overtaking(model)))
    assert way.commands()[-3:] == ["duplicate 1->2 sk.request", "drop 1->2 sk.request", "deliver 1->2 sk.request"]
    assert way.reenactment.faults == []
    assert_same_states(way)
    assert_replayable(way, tmp_path / "way.ndjson")
    text = way.scenario()
    assert "1->2 sk.request  # with the next line: moves this message behind the others\n" in text
    assert run_scenario(text, make_node) == text


def first_overtaking(model: Model) -> tuple[Action, ...]:
    """The shortest path whose last step delivers a message before an older one of its kind between the same nodes."""
    waiting: deque[tuple[State, tuple[Action, ...]]] = deque([(model.first(), ())])
    while True:
        state, path = waiting.popleft()
        for action, after, _ in model.successors(state):
            if action[0] == "message" and any(alike(model, action[2], other) for other in state[model.at_flight :]):
                return (*path, action)
            waiting.append((after, (*path, action)))


def alike(model: Model, message: int, older: int) -> bool:
    (src, dst, fields), (other_src, other_dst, other_fields) = (model.things[m] for m in (message, older))
    return older < message and (src, dst, fields[0]) == (other_src, other_dst, other_fields[0])


def test_seed_for_finds_a_seed_that_makes_the_choices() -> None:
    assert seed_for([]) == 0
    assert seed_for([(2, 1), (2, 0), (3, 2)]) > 0


def test_command_line_gives_the_options_of_a_case() -> None:
    case = Case("bv95", nodes=4, k=2, network="dup", dups=2, options={"tree": "static"})
    assert command_line(case) == (
        "fairgate check bv95 --nodes 4 --k 2 --requests 1 --network dup --dups 2 --option tree=static"
    )


# Searches that stop early.


def test_an_interrupted_search_reports_what_it_saw(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairgate.check.explore.SLICE", 100)

    def stop(states: int, depth: int, queue: int) -> None:
        assert states - queue >= 100
        raise KeyboardInterrupt

    report = explore(Case("fair_k", requests=2), progress=stop)
    assert (report.complete, report.interrupted, report.violations) == (False, True, ())
    assert 100 < report.states < 10_806


def test_the_depth_can_be_bounded() -> None:
    case = Case("naimi_trehel", requests=2)
    cut = explore(case, deepest=10)
    assert (cut.complete, cut.interrupted, cut.depth, cut.violations) == (False, False, 10, ())
    assert cut.states < 1_530
    assert explore(case, deepest=23).complete


# Liveness in graphs with cycles, made by hand: per state, its successors and a bit mask of the waiting nodes.


def graph(*states: tuple[tuple[int, ...], int]) -> Graph:
    made = Graph()
    for targets, waiting in states:
        made.extend([len(targets)], array("i", targets), array("i", [waiting]))
    return made


def test_states_on_cycles_are_found() -> None:
    assert graph(((1, 2), 0), ((2,), 1), ((), 0)).on_cycles() == []
    assert graph(((1,), 0), ((2,), 1), ((1, 3), 1), ((), 0)).on_cycles() == [1, 2, 3]  # 3 is reachable from one
    assert graph(((0,), 0)).on_cycles() == [0]


def test_a_node_that_can_never_enter_is_lost() -> None:
    assert graph(((1,), 0), ((2,), 1), ((1, 3), 1), ((), 0)).lost(nodes=1) is None
    assert graph(((1,), 0), ((2,), 2), ((1, 3), 2), ((3,), 2)).lost(nodes=2) == (1, 1)
    assert graph(((1, 2), 0), ((0,), 1), ((3,), 2), ((2,), 2)).lost(nodes=2) == (2, 1)
