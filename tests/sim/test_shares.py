"""Independent gates take turns or are shared by several processes, and the result stays the same."""

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
from fairgate.sim.summary import Measures, Result, measure

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
    "sigma": ROUNDS,  # retries by timers
    "sigma, routed": replace(ROUNDS, options={"replicas": 5, "responses": "routed", "retry": 0, "lease": 0}),
    "e2e": replace(ROUNDS, protocol="e2e"),
    "non_e2e": replace(ROUNDS, protocol="non_e2e"),  # draws random numbers
    "on chord": replace(ROUNDS, protocol="e2e", stack=("settled_chord",)),
    "requests in total": replace(ROUNDS, protocol="non_e2e", per_resource=False, requests=30),
    "churn": replace(ROUNDS, protocol="non_e2e", requesters=20, churn=8),
    "few requesters": replace(ROUNDS, protocol="e2e", requesters=6, requests=6),  # so a node is inside several gates
    "replicas lose their memory": replace(ROUNDS, replica_life=30.0),
    "after a warm-up": replace(ROUNDS, seconds=30.0, warmup_seconds=10.0),
    "one long round": replace(ROUNDS, rounds=1, requests=30, round_seconds=20.0),  # shares end at different times
    "timers that are set at a round": replace(
        ROUNDS, protocol="e2e_ft", requesters=20, rounds=20, options={"replicas": 5, "lease": 2_000_000_000}
    ),
    "crashes": replace(ROUNDS, protocol="e2e", faults="crash:*3@5+4"),
    "nobody leaves for a long time": replace(
        ROUNDS, protocol="e2e", rounds=600, requests=2, leave=0.002, latency="1", round_seconds=100.0
    ),
    "messages that cross rounds": replace(ROUNDS, protocol="non_e2e", round_seconds=0.3),
}


def found(result: Result) -> dict[str, Any]:
    return replace(result, seconds=0.0).as_json()


@pytest.mark.parametrize("name", CASES)
def test_the_result_is_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "SLICE", 50)  # so that a share often checks whether to stop
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
        replace(ROUNDS, latency="0", round_seconds=1.0),  # all events happen at the same time: only their order counts
        replace(ROUNDS, faults="loss:0.01"),
        replace(ROUNDS, usage=True),  # records every change of the number inside, in time order
        replace(ROUNDS, stack=("chord",), nodes=20),  # all gates share a dynamic ring
        replace(ROUNDS, workload="closed", rounds=0, requests=2),  # draws random numbers at every exit
    ],
)
def test_one_process_runs_gates_that_are_not_independent(config: Config) -> None:
    assert rounds_by_gates(build(config)) is None


def test_each_process_runs_only_the_gates_of_its_share() -> None:
    engines = [build(ROUNDS) for _ in range(3)]
    parts = [run_alone(engine, number) for number, engine in enumerate(engines)]
    for number, engine in enumerate(engines):
        used = {seat.number % 7 for seat in engine.seat if seat is not None}
        assert used == {gate for gate in range(7) if gate % 3 == number}
    assert sum(part.entries for part in parts) > ROUNDS.resources


class Apart(Share):
    """A share that never hears from the others."""


def run_alone(engine: Engine, number: int) -> Measures:
    runs.run(engine, None, Apart(number, 3))
    return measure(engine, first=number == 0)


# How runs end.


def long_run() -> Engine:
    return build(replace(ROUNDS, nodes=300, resources=6, rounds=100_000))


def test_ctrl_c_ends_all_shares_and_keeps_their_results(monkeypatch: pytest.MonkeyPatch) -> None:
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
    assert measures.inside_time + measures.now * measures.inside > 0  # gates that lag behind count up to the present
    assert multiprocessing.active_children() == []


def test_ctrl_c_while_waiting_for_other_shares_keeps_their_results() -> None:
    """The first share has finished and waits for the other."""
    nothing = measure(build(ROUNDS))

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


def test_the_first_share_waits_for_the_others() -> None:
    nothing = measure(build(ROUNDS))

    def work(share: OtherShare) -> Measures:
        until = time.monotonic() + 0.3
        while time.monotonic() < until:
            share.listen(0)  # raises Stopped if the first share says so
        return replace(nothing.packed(), entries=7)

    first = FirstShare(2, work)
    try:
        first.start()
        assert [part.entries for part in first.end(early=False)] == [7]
    finally:
        first.close()


class Odd(Exception):
    """An exception that cannot be pickled, whatever libraries do for exceptions in general."""

    def __reduce__(self) -> str:
        raise TypeError


def test_an_exception_that_cannot_be_pickled_is_sent_as_text() -> None:
    assert str(as_sent(Odd("one and two"))) == "Odd: one and two"
    assert isinstance(as_sent(OverflowError("late")), OverflowError)


def test_zero_workers_means_one() -> None:
    assert found(simulate(ROUNDS, workers=0)) == found(simulate(ROUNDS))


def test_a_killed_worker_is_reported_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "SLICE", 500)

    def kill(entries: int) -> None:
        if entries > 100:
            process = multiprocessing.active_children()[0]
            assert process.pid is not None
            os.kill(process.pid, signal.SIGKILL)

    with pytest.raises(FairgateError, match="was killed"):
        run_all(long_run(), kill, 2)
    assert multiprocessing.active_children() == []


def test_an_exception_in_a_share_is_raised_in_the_first() -> None:
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


def test_a_share_that_ends_early_ends_the_whole_run() -> None:
    """As happens in a single process when a protocol's assertion fails."""
    nothing = measure(build(ROUNDS))

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


def test_a_worker_ends_when_the_first_process_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that is killed cannot tell the others to stop."""
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
