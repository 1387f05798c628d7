"""RF section 8 sentence by sentence, and where our measurements differ from it.

RF is "Fault Tolerant K-Mutual Exclusion Algorithm Using Failure Detector". N=15 nodes and k=5 units, as in figure 4.
Nodes crash one after another until one is left.
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import pytest

from fairgate.sim.config import Config
from fairgate.sim.run import simulate
from fairgate.sim.summary import Result

N, K = 15, 5
EVERY = 300  # s between two crashes
CRASHES = [EVERY * i for i in range(1, N)]
DETECT = 2  # s from a crash until every survivor has detected it
SETTLED = 150  # s after a crash until plain Raymond has served all requests that the victim had answered
SEEDS = (1, 2, 3)


@cache
def crashing(protocol: str, seed: int = 1) -> Result:
    faults = ",".join(f"crash:{node}@{when}" for node, when in enumerate(CRASHES))
    config = Config(
        protocol=protocol,
        nodes=N,
        k=K,
        rate=1,
        cs=10,
        latency="0.1",
        requests=600,
        usage=True,
        seed=seed,
        faults=f"{faults},detect:{DETECT}",
    )
    return simulate(config)


def in_use(result: Result, settled: float) -> list[int]:
    """The most units in use at a time, before the first crash and after each one, not counting `settled` seconds."""
    most = []
    for start, end in zip([0, *CRASHES], [*CRASHES, CRASHES[-1] + EVERY], strict=True):
        level = [inside for when, inside in result.usage if when <= start + settled][-1]
        most.append(max([level, *[inside for when, inside in result.usage if start + settled < when < end]]))
    return most


# 8.1 Effectiveness.


@pytest.mark.parametrize("seed", SEEDS)
def test_at_every_crash_raymonds_concurrent_accesses_are_decremented_by_one(seed: int) -> None:
    assert in_use(crashing("raymond", seed), SETTLED) == [5, 4, 3, 2, 1] + [0] * 10


def test_requests_that_the_victim_had_answered_are_still_satisfied() -> None:
    """The paper shows an instant drop, but a request that the victim had already answered no longer needs it."""
    at_once = in_use(crashing("raymond"), 0.0)
    assert at_once[1] == 5  # one node is dead, and still five are inside at once
    assert all(later <= now for now, later in zip(at_once, in_use(crashing("raymond"), SETTLED), strict=True))


def test_after_k_crashes_no_new_request_is_satisfied() -> None:
    result = crashing("raymond")
    entries = [when for (_, before), (when, inside) in pairwise(result.usage) if inside > before]
    assert max(entries) < CRASHES[K - 1] + SETTLED
    assert [broken.partition(":")[0] for broken in result.broken] == ["liveness"]


@pytest.mark.parametrize("seed", SEEDS)
def test_the_extension_keeps_all_usable_units_in_use_down_to_the_last_survivor(seed: int) -> None:
    result = crashing("raymond_fd", seed)
    assert result.violations == 0
    survivors = range(N, 0, -1)
    assert in_use(result, DETECT + 1) == [min(K, left) for left in survivors]


def test_the_last_survivor_completes_all_its_requests() -> None:
    result = crashing("raymond_fd")
    assert result.simulated > CRASHES[-1] + 600 * 10 / 2  # it made most of them after the last crash
    assert result.usage[-1][1] == 0


# 8.2 Number of messages.


@pytest.mark.parametrize("latency", ["0.1", "1"])
@pytest.mark.parametrize("rate", [0.001, 0.02, 0.5])
def test_with_constant_critical_sections_an_entry_takes_exactly_2n_minus_2(latency: str, rate: float) -> None:
    """The paper's upper bound is 2N-1. With constant latencies as well, no two deferred replies are ever combined."""
    result = simulate(Config(protocol="raymond", nodes=N, k=K, rate=rate, latency=latency, requests=60))
    assert result.messages_per_entry == 2 * (N - 1)


@pytest.mark.parametrize("latency", ["0.1", "1", "uniform:0,2"])
@pytest.mark.parametrize("rate", [0.02, 0.5])
def test_with_varying_critical_sections_an_entry_takes_2n_minus_k_minus_1_to_2n_minus_2(
    latency: str, rate: float
) -> None:
    """If stays differ in length, one REPLY may answer several requests of a node that entered without it."""
    config = Config(protocol="raymond", nodes=N, k=K, rate=rate, latency=latency, requests=100, exponential_cs=True)
    assert 2 * N - K - 1 <= simulate(config).messages_per_entry < 2 * N - 2


def test_when_no_crash_occurs_the_extension_costs_the_same_per_entry() -> None:
    plain, extended = (
        simulate(Config(protocol=name, nodes=N, k=K, rate=0.5, requests=60)).messages
        for name in ("raymond", "raymond_fd")
    )
    entries = N * 60
    assert plain["ry.request"] == extended["ry.request"] == entries * (N - 1)
    assert plain["ry.reply"] == extended["ry.reply"]


def test_during_initialization_each_process_sends_up_to_2n_minus_2_messages() -> None:
    """Each process sends one INIT and one ACK to every other, once."""
    messages = crashing("raymond_fd").messages
    assert messages["rf.init"] == messages["rf.ack"] == N * (N - 1)


def one_crash(protocol: str) -> int:
    result = simulate(Config(protocol=protocol, nodes=N, k=K, requests=5, faults="crash:3@40"))
    assert result.violations == 0
    return result.messages["rf.crash"]


def test_a_crash_costs_one_broadcast_by_every_truster() -> None:
    """Each of the N-1 survivors tells the other N-2. In the paper's text it also tells the dead one."""
    assert one_crash("raymond_fd") == (N - 1) * (N - 2) == 182
    assert one_crash("raymond_fd_literal") == (N - 1) * (N - 1) == 196


def test_later_crashes_cost_less() -> None:
    """N-1-|crashed| messages per truster, summed over all fourteen crashes."""
    assert crashing("raymond_fd").messages["rf.crash"] == sum(left * (left - 1) for left in range(1, N))
    assert crashing("raymond_fd_literal").messages["rf.crash"] == sum(left * left for left in range(1, N))
