"""Gates that are nothing to each other take turns, or several processes share them: nothing else changes."""

from __future__ import annotations

import multiprocessing
import os
import select
import signal
import threading
import time
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from fairgate.errors import FairgateError
from fairgate.sim import run as runs
from fairgate.sim.build import build
from fairgate.sim.config import Config
from fairgate.sim.engine import Engine
from fairgate.sim.run import rounds_by_gates, run_all, simulate
from fairgate.sim.shares import FirstShare, OtherShare, Share, Stopped, as_sent
from fairgate.sim.summary import Measures, Result

ROUNDS = Config(
    protocol="sigma",
    nodes=80,
    k=1,
    resources=7,
    workload="rounds",
    rounds=8,
    requests=6,
    per_resource=True,
    latency="0.05",
    stack=("settled_pastry",),
    options={"replicas": 5},
)
CASES = {
    "sigma": ROUNDS,  # it asks again and again, by timers
    "sigma, routed": replace(ROUNDS, options={"replicas": 5, "responses": "routed", "retry": 0, "lease": 0}),
    "e2e": replace(ROUNDS, protocol="e2e"),
    "non_e2e": replace(ROUNDS, protocol="non_e2e"),  # it draws random numbers
    "on chord": replace(ROUNDS, protocol="e2e", stack=("settled_chord",)),
    "requests in all": replace(ROUNDS, protocol="non_e2e", per_resource=False, requests=30),
    "churn": replace(ROUNDS, protocol="non_e2e", requesters=20, churn=8),
    "few ask for all": replace(ROUNDS, protocol="e2e", requesters=6, requests=6),  # so a node is in several gates
    "replicas lose their memory": replace(ROUNDS, replica_life=30.0),
    "after a warm-up": replace(ROUNDS, seconds=30.0, warmup_seconds=10.0),
    "one long round": replace(ROUNDS, rounds=1, requests=30, round_seconds=20.0),  # shares end at different times
    "timers that are set at a round": replace(
        ROUNDS, protocol="e2e_ft", requesters=20, rounds=20, options={"replicas": 5, "lease": 2_000_000_000}
    ),
    "crashes": replace(ROUNDS, protocol="e2e", faults="crash:*3@5+4"),
    "nobody leaves for long": replace(ROUNDS, protocol="e2e", rounds=300, requests=2, leave=0.01, latency="1"),
    "messages that cross rounds": replace(ROUNDS, protocol="non_e2e", round_seconds=0.3),
}


def found(result: Result) -> dict[str, Any]:
    return replace(result, seconds=0.0).as_json()


@pytest.mark.parametrize("name", CASES)
def test_what_comes_out_is_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "SLICE", 50)  # so that a share looks often whether it shall stop
    config = CASES[name]
    by_turns, by_two, by_three = (found(simulate(config, workers=workers)) for workers in (1, 2, 3))
    monkeypatch.setattr(runs, "rounds_by_gates", lambda engine: None)
    in_order = found(simulate(config))
    assert in_order["entries"] >= config.resources
    assert by_turns == in_order
    assert by_two == in_order
    assert by_three == in_order


def test_more_workers_than_gates() -> None:
    assert found(simulate(ROUNDS, workers=50)) == found(simulate(ROUNDS))
    assert multiprocessing.active_children() == []


@pytest.mark.parametrize(
    "config",
    [
        replace(ROUNDS, resources=1),
        replace(ROUNDS, latency="uniform:0.01,0.1"),  # drawn in the order of all messages
        replace(ROUNDS, latency="0", round_seconds=1.0),  # all at one moment: their order is all there is
        replace(ROUNDS, faults="loss:0.01"),
        replace(ROUNDS, usage=True),  # every change of the number inside, in order
        replace(ROUNDS, stack=("chord",), nodes=20),  # a ring that learns belongs to all gates
        replace(ROUNDS, workload="closed", rounds=0, requests=2),  # draws at every exit
    ],
)
def test_where_gates_are_something_to_each_other_one_process_runs_all_in_order(config: Config) -> None:
    assert rounds_by_gates(build(config)) is None


def test_gates_run_in_the_process_whose_share_they_are() -> None:
    engines = [build(ROUNDS) for _ in range(3)]
    parts = [run_alone(engine, number) for number, engine in enumerate(engines)]
    for number, engine in enumerate(engines):
        used = {seat.number % 7 for seat in engine.seat if seat is not None}
        assert used == {gate for gate in range(7) if gate % 3 == number}
    assert sum(part.entries for part in parts) > ROUNDS.resources


class Apart(Share):
    """Hears of nobody else."""


def run_alone(engine: Engine, number: int) -> Measures:
    runs.run(engine, None, Apart(number, 3))
    return runs.measure(engine, first=number == 0)


# Ends.


def long_run() -> Engine:
    return build(replace(ROUNDS, nodes=300, resources=6, rounds=100_000))


def test_ctrl_c_ends_all_and_nothing_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "SLICE", 500)
    looks: list[int] = []

    def look(entries: int) -> None:
        looks.append(entries)
        if entries > 100:
            raise KeyboardInterrupt

    ended, measures = run_all(long_run(), look, 3)
    assert not ended
    assert measures.entries > 100 > looks[-2]
    assert measures.violations == 0
    assert measures.inside_time + measures.now * measures.inside > 0  # gates that were behind are counted up to now
    assert multiprocessing.active_children() == []


def test_ctrl_c_while_others_go_on_loses_nothing() -> None:
    """The first is through, and waits."""
    nothing = runs.measure(build(ROUNDS))

    def work(share: OtherShare) -> Measures:
        with suppress(Stopped):
            share.told()
        return replace(nothing.packed(), entries=7)

    first = FirstShare(2, work)
    try:
        first.start()
        timer = threading.Timer(0.2, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            first.end(early=False)
        assert [part.entries for part in first.end(early=True)] == [7]
    finally:
        first.close()


def test_who_is_through_waits_for_the_others() -> None:
    nothing = runs.measure(build(ROUNDS))

    def work(share: OtherShare) -> Measures:
        until = time.monotonic() + 0.3
        while time.monotonic() < until:
            share.listen(0)  # raises Stopped if it is told to stop
        return replace(nothing.packed(), entries=7)

    first = FirstShare(2, work)
    try:
        first.start()
        assert [part.entries for part in first.end(early=False)] == [7]
    finally:
        first.close()


class Odd(Exception):
    """It cannot be told: unpickled, it would want two arguments."""

    def __init__(self, one: int, other: int) -> None:
        super().__init__(f"{one} and {other}")


def test_what_cannot_be_told_is_told_in_words() -> None:
    assert str(as_sent(Odd(1, 2))) == "Odd: 1 and 2"
    assert isinstance(as_sent(OverflowError("late")), OverflowError)


def test_no_worker_at_all_is_one() -> None:
    assert found(simulate(ROUNDS, workers=0)) == found(simulate(ROUNDS))


def test_a_share_that_is_killed_is_told_of_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "SLICE", 500)

    def kill(entries: int) -> None:
        if entries > 100:
            process = multiprocessing.active_children()[0]
            assert process.pid is not None
            os.kill(process.pid, signal.SIGKILL)

    with pytest.raises(FairgateError, match="was killed"):
        run_all(long_run(), kill, 2)
    assert multiprocessing.active_children() == []


def test_what_goes_wrong_in_a_share_goes_wrong_here() -> None:
    def work(share: OtherShare) -> Measures:
        share.meet([], 0)
        raise OverflowError(f"in share {share.number}")

    first = FirstShare(3, work)
    try:
        first.start()
        assert first.meet([4], 1) == [4]
        with pytest.raises(OverflowError, match="in share 1"):
            first.meet([], 1)
    finally:
        first.close()
    assert multiprocessing.active_children() == []


def test_a_share_that_is_over_early_ends_the_run_of_all() -> None:
    """So does one process in which a protocol notices that something is wrong."""
    nothing = runs.measure(build(ROUNDS))

    def work(share: OtherShare) -> Measures:
        with suppress(Stopped):
            for _ in range(2 * share.number):
                share.meet([share.number], 10)
        return replace(nothing.packed(), entries=share.number)

    first = FirstShare(3, work)
    try:
        first.start()
        assert [first.meet([0], 1), first.meet([], 2)] == [[0, 1, 2], [1, 2]]
        assert first.entries == 22
        with pytest.raises(Stopped):
            first.meet([], 3)
        assert [part.entries for part in first.end(early=True)] == [1, 2]
    finally:
        first.close()


def test_who_has_lost_the_first_one_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed, it can tell nobody to stop."""
    monkeypatch.setattr(runs, "SLICE", 500)
    here, there = multiprocessing.Pipe()

    def report(entries: int) -> None:
        if entries > 100:
            there.send([process.pid for process in multiprocessing.active_children()])
            signal.pause()

    first = multiprocessing.get_context("fork").Process(target=run_all, args=(long_run(), report, 3))
    first.start()
    assert first.pid is not None
    others: list[int] = here.recv()
    ends = [os.pidfd_open(pid) for pid in others]
    os.kill(first.pid, signal.SIGKILL)
    first.join()
    try:
        for end in ends:
            assert select.select([end], [], [], 5.0)[0] == [end]
    finally:
        for pid, end in zip(others, ends, strict=True):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            os.close(end)
    assert len(others) == 2
