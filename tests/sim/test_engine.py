"""Faults, counts, workloads and ends of simulated runs: small runs that each test one thing.

Raymond's algorithm with k = n is an open gate: all nodes enter at once and nothing is sent, so that only what a test
looks at happens. `centralised` with latency 0 is a plain queue.
"""

from __future__ import annotations

import gc
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from fairgate.core.message import Message
from fairgate.core.properties import Occupancy
from fairgate.protocols.fair_k import FairK
from fairgate.sim.build import build
from fairgate.sim.config import Config
from fairgate.sim.engine import Engine
from fairgate.sim.metrics import Metrics
from fairgate.sim.overtakes import Waiters
from fairgate.sim.quantiles import quantiles
from fairgate.sim.run import run, simulate
from fairgate.sim.stream import Stream
from fairgate.trace.journal import read

SECOND = 1_000_000_000

OPEN_GATE = Config(protocol="raymond", nodes=3, k=3, rate=1, cs=1, latency="0.1", requests=20)
QUEUE = Config(protocol="centralised", nodes=4, k=1, rate=1, cs=1, latency="0", requests=5)


def ran(config: Config) -> Engine:
    engine = build(config)
    assert run(engine, None)
    return engine


def names(broken: Any) -> set[str]:
    """The names of the properties that were violated."""
    return {line.partition(":")[0] for line in broken}


class Hearing(FairK):
    """A protocol in Python on top of a compiled one."""

    heard = 0

    def on_message(self, src: int, msg: Message) -> None:
        Hearing.heard += 1
        FairK.on_message(self, src, msg)


def test_a_python_class_may_override_how_messages_are_handled() -> None:
    engine = build(Config(protocol="fair_k", nodes=5, k=2, requests=5))
    for me in range(5):
        engine.place(me, Hearing(me, engine.setup, engine))
    assert run(engine, None)
    assert Hearing.heard == engine.sent_total() > 0
    assert engine.violations == []


# Crashes and resets.


def test_a_crashed_node_never_comes_back() -> None:
    engine = ran(replace(OPEN_GATE, faults="crash:1@5"))
    assert engine.is_down(1)
    assert not engine.is_down(0)
    totals = engine.metrics.node_totals()
    assert totals[0] == totals[2] == 20
    assert totals[1] < 6  # each entry lasts a second
    assert engine.workload.total_left == 0
    assert engine.violations == []


def test_a_node_that_crashes_inside_leaves_the_gate() -> None:
    usage = simulate(replace(OPEN_GATE, nodes=1, k=1, cs=100, usage=True, faults="crash:0@50")).usage
    assert [inside for _, inside in usage] == [0, 1, 0]
    assert usage[-1][0] == 50


def test_random_crashes_come_one_after_another() -> None:
    engine = build(replace(OPEN_GATE, nodes=8, k=8, requests=50, faults="crash:*3@10+10"))
    engine.begin()
    down = []
    while engine.run(1):
        down.append((engine.now // SECOND, sum(engine.is_down(me) for me in range(8))))
    assert {count for second, count in down if second < 10} == {0}
    assert {count for second, count in down if 10 < second < 20} == {1}
    assert {count for second, count in down if 20 < second < 30} == {2}
    assert {count for second, count in down if second > 30} == {3}


def test_a_message_to_a_crashed_node_is_lost_with_its_tokens() -> None:
    result = simulate(Config(nodes=5, k=2, requests=10, faults="crash:3@30", census_every=1))
    assert names(result.broken) == {"liveness"}  # but not tokens: those in lost messages are accounted for


def test_a_reset_node_comes_back_with_empty_memory(tmp_path: Path) -> None:
    journal = str(tmp_path / "journal")
    config = replace(OPEN_GATE, faults="reset:1@5+3")
    assert simulate(config, journal=journal).violations == 0
    steps = [step for step in read(journal)[1] if step.node == 1]
    events = [step.event for step in steps]
    crash, back = events.index("crash"), events.index("reset")
    assert back == crash + 1
    assert [steps[i].now for i in (crash, back)] == [5 * SECOND, 8 * SECOND]
    assert events[back + 1] == "start"
    assert steps[back].key == steps[back + 1].key == steps[0].key  # as when it first started
    assert events.count("acquire") >= 18  # it continues with its remaining requests


def test_resetting_a_node_that_is_up_is_a_no_op() -> None:
    """Of two overlapping resets, the first to end brings the node back."""
    once, twice = (ran(replace(OPEN_GATE, faults=faults)) for faults in ("reset:1@5+3", "reset:1@5+3,reset:1@6+9"))
    assert once.metrics.node_totals() == twice.metrics.node_totals()
    assert twice.inside() == 0


# The network.


def test_a_lost_message_never_arrives() -> None:
    result = simulate(Config(nodes=5, k=2, requests=3, faults="loss:1", census_every=1))
    assert result.load_max == 0
    assert result.entries == 6  # nodes that have a token use it
    assert names(result.broken) == {"liveness"}


def test_about_the_given_share_is_lost() -> None:
    result = simulate(replace(OPEN_GATE, protocol="raymond", nodes=9, k=8, requests=200, faults="loss:0.1"))
    sent = sum(result.messages.values())
    assert result.load_mean * 9 == pytest.approx(0.9 * sent, rel=0.03)


def test_about_the_given_share_arrives_twice() -> None:
    """Over a channel, which delivers each of them once."""
    result = simulate(Config(protocol="centralised", nodes=9, k=8, requests=100, stack=("channel",), faults="dup:0.2"))
    sent = sum(result.messages.values())
    assert result.load_mean * 9 == pytest.approx(1.2 * sent, rel=0.03)
    assert result.violations == 0


def test_a_reordered_message_takes_up_to_ten_times_as_long() -> None:
    """Two nodes that never compete: a wait is one request and one reply."""
    quiet = Config(protocol="raymond", nodes=2, k=1, rate=1e-6, cs=0, latency="1", requests=200)
    assert simulate(quiet).wait_max == 2.0
    result = simulate(replace(quiet, faults="reorder:1"))
    assert result.wait_p50 == pytest.approx(11, rel=0.1)
    assert 18 < result.wait_max <= 20
    some = simulate(replace(quiet, faults="reorder:0.2"))
    assert some.wait_p50 == 2.0 < some.wait_p90


def test_no_message_crosses_a_partition() -> None:
    """Node 0 is the server. Node 3 makes a request while it is cut off, and nothing resends it."""
    result = simulate(replace(QUEUE, latency="0.1", faults="partition:0-2/3@0+3"))
    assert names(result.broken) == {"liveness"}
    assert result.entries == 15


def test_a_partition_ends() -> None:
    config = replace(QUEUE, latency="0.1", stack=("channel",), faults="partition:0.1/2-3@2+30")
    result = simulate(config)
    assert result.violations == 0
    assert result.entries == 20
    assert 30 < result.wait_max < 40


# Measurements.


def test_overtakes_of_a_scripted_order() -> None:
    line = Waiters()
    first, second, third, fourth = (line.join() for _ in range(4))
    line.enter(third)  # overtakes the first two
    assert (line.overtakes, line.max_displacement, line.max_overtaken) == (2, 2, 0)
    line.enter(first)  # overtakes nobody; was overtaken by the third
    assert (line.overtakes, line.max_displacement, line.max_overtaken) == (2, 2, 1)
    fifth, sixth = line.join(), line.join()
    line.drop(fourth)  # gives up, which overtakes nobody
    line.enter(sixth)  # overtakes the second and the fifth
    assert (line.overtakes, line.max_displacement, line.max_overtaken) == (4, 2, 1)
    line.enter(second)  # was overtaken by the third and the sixth
    assert (line.overtakes, line.max_overtaken) == (4, 2)
    line.enter(fifth)
    assert (line.overtakes, line.max_displacement, line.max_overtaken) == (4, 2, 2)
    line.enter(line.join())
    assert (line.overtakes, line.max_overtaken) == (4, 2)


def test_overtakes_are_exact_in_a_large_crowd() -> None:
    """The last of 3,000 overtakes all the others, and then the first is overtaken by every one of them."""
    line = Waiters()
    numbers = [line.join() for _ in range(3_000)]
    for number in reversed(numbers):
        line.enter(number)
    assert line.max_displacement == 2_999
    assert line.max_overtaken == 2_999
    assert line.overtakes == 2_999 * 3_000 // 2


def test_occupancy_describes_each_violation() -> None:
    gate = Occupancy(2, slots=True)
    assert gate.enter(7, 0, 1) == ""
    assert gate.enter(8, 1, 1) == ""
    assert gate.enter(9, 0, 2).startswith("k: 3 inside, k is 2")
    gate.leave(9, 0)
    gate.leave(7, 0)  # no longer its slot: 9 was in it last
    assert (gate.inside, gate.max_inside) == (1, 3)
    assert gate.enter(7, 1, 2) == "slot: node 7 was given slot 1, node 8 is in it"
    gate.leave(7, 1)
    assert gate.enter(7, 1, 2) == "fence: slot 1 gave fence 2 after 2"
    gate.leave(7, 1)
    assert gate.enter(7, 2, 3) == "slot: node 7 was given slot 2, there are 0..1"


def test_occupancy_without_slots_refuses_slots() -> None:
    gate = Occupancy(1, slots=False)
    assert gate.enter(3, -1, -1) == ""
    gate.leave(3, -1)
    assert gate.enter(3, 0, 1).startswith("slot: node 3 was given slot 0 and fence 1, but its protocol has none: ")


def test_the_warm_up_excludes_the_first_requests_of_each_node_from_the_waits_only() -> None:
    metrics = Metrics(2, warmup=2)
    for wait in (50, 40, 3, 1):
        metrics.entered(0, wait)
    metrics.entered(1, 99)
    assert metrics.entries == 5
    assert list(metrics.kept_waits()) == [3, 1]
    assert (metrics.counted, metrics.wait_total, metrics.wait_max) == (2, 4, 3)
    assert list(metrics.node_maxima()) == [3]  # node 1 has no wait that counts
    assert metrics.node_totals() == [4, 1]


def test_any_number_of_waits_is_kept() -> None:
    metrics = Metrics(1, warmup=0)
    for wait in range(5_000):
        metrics.entered(0, wait)
    assert list(metrics.kept_waits()) == list(range(5_000))


def test_quantiles_are_measured_values() -> None:
    assert quantiles([7, 2, 9, 4, 10, 1, 3, 8, 6, 5], (0.5, 0.9, 0.99, 1.0)) == [5, 9, 10, 10]
    assert quantiles([3], (0.01,)) == [3]
    assert quantiles([], (0.5,)) == [0]


def test_usage_is_every_change_of_the_number_inside() -> None:
    result = simulate(replace(QUEUE, usage=True, k=2, nodes=3))
    times = [when for when, _ in result.usage]
    assert times == sorted(times)
    assert result.usage[0] == (0.0, 0)
    steps = [after - before for (_, before), (_, after) in pairwise(result.usage)]
    assert steps.count(1) == steps.count(-1) == result.entries == 15
    assert max(inside for _, inside in result.usage) == result.max_inside == 2
    held = sum(inside * (end - start) for (start, inside), (end, _) in pairwise(result.usage))
    assert held == pytest.approx(15)  # one second each
    assert result.units_mean == pytest.approx(held / result.simulated)
    assert simulate(QUEUE).usage == ()


def test_at_most_a_hundred_violations_are_described() -> None:
    config = Config("srimani_reddy", nodes=10, k=2, requests=20, cs=1, latency="0.1", faults="dup:0.02", census_every=1)
    result = simulate(config)
    assert result.violations > 100
    assert len(result.broken) == 100


# Invariants.


def test_a_lost_token_is_reported() -> None:
    result = simulate(Config(protocol="naimi_trehel", nodes=5, k=1, requests=20, faults="loss:0.05"))
    assert "liveness" in names(result.broken)
    assert "nothing moves any more" in result.broken[-1]


def test_the_census_catches_a_duplicated_token() -> None:
    found = set()
    for seed in range(6):
        config = Config(nodes=10, k=2, requests=20, cs=1, latency="0.1", faults="dup:0.02", seed=seed, census_every=1)
        found |= names(simulate(config).broken)
    assert {"tokens", "coordinator"} <= found


def test_a_run_whose_clock_stands_still_ends() -> None:
    """Messages circulate and take no time: only the number of events shows that the run is stuck."""
    result = simulate(Config("fair_k", nodes=6, k=2, requests=10, latency="0", faults="dup:0.1"))
    assert [broken.split(" while")[0] for broken in result.broken] == ["liveness: no entry for 2,000,000 events"]


def test_a_failed_assertion_of_a_protocol_is_a_violation() -> None:
    config = Config(nodes=10, k=2, requests=20, cs=1, latency="0.1", faults="dup:0.02", seed=2)
    assert simulate(config).broken[-1].startswith("assertion: a turn came to a node that never asked for one")


def test_unchecked_runs_report_no_violations() -> None:
    config = Config(protocol="naimi_trehel", nodes=5, k=1, requests=20, faults="loss:0.05", check=False)
    assert simulate(config).violations == 0


# Workloads.


def test_a_closed_node_thinks_after_each_exit() -> None:
    result = simulate(replace(OPEN_GATE, rate=0.5, requests=2000))
    assert result.entries == 6000
    assert result.wait_max == 0.0
    assert result.simulated == pytest.approx(2000 * (1 + 2), rel=0.1)  # the last of three nodes


def open_waits(seed: int, requests: int, hold: int, gap: float) -> list[int]:
    """Waits of one node at one server: what remains of the stays of earlier requests."""
    arrivals, waits = Stream(f"{seed}:workload"), []
    arrival = free = 0
    for _ in range(requests):
        arrival += int(arrivals.exponential(gap))
        begin = max(arrival, free)
        waits.append(begin - arrival)
        free = begin + hold
    return waits


@pytest.mark.parametrize("rate", [0.5, 0.9, 2.0])
def test_open_arrivals_queue_at_their_node_and_wait_from_their_arrival(rate: float) -> None:
    config = replace(OPEN_GATE, nodes=1, k=1, workload="open", rate=rate, requests=200)
    engine = ran(config)
    assert list(engine.metrics.kept_waits()) == open_waits(1, 200, SECOND, SECOND / rate)
    assert engine.inside_time == 200 * SECOND <= engine.now


def test_time_never_runs_backwards() -> None:
    engine = build(replace(QUEUE, workload="open", latency="0.2", rate=3, k=2))
    engine.begin()
    last = 0
    while engine.run(1):
        assert engine.now >= last
        last = engine.now
    assert engine.metrics.entries == 20


def test_a_round_begins_when_the_previous_one_has_ended() -> None:
    result = simulate(replace(QUEUE, nodes=8, workload="rounds", askers=3, requests=5, usage=True))
    assert result.entries == 15
    assert result.simulated == 15.0  # one after another, one second each
    assert [result.wait_p50, result.wait_max] == [1.0, 2.0]  # 0, 1 and 2 s in every round
    assert result.wait_mean == pytest.approx(1.0)


def test_rounds_go_on_when_an_asker_crashes() -> None:
    config = Config(protocol="raymond_fd", nodes=5, k=2, workload="rounds", askers=3, requests=20)
    result = simulate(replace(config, faults="crash:0@33,crash:1@60"))
    assert result.violations == 0
    assert 58 <= result.entries <= 60  # all but the requests of the crashed nodes


def test_rounds_do_not_count_a_node_that_comes_back() -> None:
    config = replace(OPEN_GATE, workload="rounds", askers=2, requests=30)
    plain, reset = (simulate(replace(config, faults=faults)) for faults in ("", "reset:1@5.5+0.1"))
    assert plain.entries == 60
    assert 59 <= reset.entries <= 60
    assert reset.max_inside == 2


def test_a_node_that_gives_up_is_cancelled_and_goes_on() -> None:
    config = replace(QUEUE, nodes=6, requests=50, give_up=1.0, give_up_after=0.5, latency="0.05")
    result = simulate(config)
    assert result.violations == 0
    assert result.cancelled > 50
    assert result.entries + result.cancelled == 300
    assert result.wait_max < 10  # nodes give up after 0.5 s on average


def test_the_given_share_of_requests_gives_up() -> None:
    config = replace(QUEUE, nodes=6, requests=200, give_up=0.25, give_up_after=0.001)
    assert simulate(config).cancelled == pytest.approx(0.25 * 1200, rel=0.15)  # hardly any of them is inside by then
    assert simulate(replace(config, give_up=0.0)).cancelled == 0


def test_stays_can_be_random() -> None:
    usage = simulate(replace(OPEN_GATE, nodes=1, k=1, requests=2000, exponential_cs=True, usage=True)).usage
    stays = [end - start for (start, inside), (end, _) in pairwise(usage) if inside]
    assert sum(stays) / len(stays) == pytest.approx(1.0, rel=0.1)
    assert min(stays) < 0.1
    assert max(stays) > 4


# How runs end.

LEASED = Config(protocol="leased", nodes=3, k=1, rate=1, cs=1, latency="0.1", requests=5)


def test_a_timed_run_ends_with_the_last_exit() -> None:
    result = simulate(replace(LEASED, usage=True))
    assert result.violations == 0
    assert result.entries == 15
    assert result.simulated == result.usage[-1][0]  # not when the last timer fires


def test_a_timed_run_ends_when_the_last_waiter_crashes() -> None:
    """A channel would resend to the crashed node forever, but no request waits any more."""
    for seed in range(30):
        for when in (1, 1.5, 2, 3):
            config = replace(LEASED, nodes=2, requests=1, latency="0.3", stack=("channel",), faults=f"crash:1@{when}")
            engine = build(replace(config, seed=seed))
            engine.begin()
            assert not engine.run(20_000)


def test_a_stuck_timed_run_is_reported() -> None:
    result = simulate(replace(LEASED, stack=("channel",), faults="crash:0@3"))
    assert names(result.broken) == {"liveness"}


def test_ctrl_c_returns_what_was_measured_so_far() -> None:
    seen: list[int] = []

    def stop(entries: int) -> None:
        seen.append(entries)
        raise KeyboardInterrupt

    result = simulate(Config(requests=1_000), progress=stop)
    assert result.interrupted
    assert seen == [result.entries]
    assert 10_000 < result.entries < 100_000
    assert result.violations == 0  # requests that still wait are no violation
    assert 2.5 < result.units_mean <= 3.0  # permits still held count until the end
    assert gc.isenabled()


def test_progress_is_reported_during_the_run() -> None:
    seen: list[int] = []
    result = simulate(Config(requests=500), progress=seen.append)
    assert not result.interrupted
    assert seen == sorted(seen)
    assert 0 < seen[0] < seen[-1] <= result.entries
