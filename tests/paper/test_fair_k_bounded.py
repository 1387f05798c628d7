"""Fair-k with a bound on re-entries: each rule, then the bound itself (papers/fair_k.md, "Bounded").

None of this is in FK, "Fair K Mutual Exclusion Algorithm for Peer To Peer Systems": the bound is our addition.
"""

from __future__ import annotations

import random

import pytest

from fairgate.check.case import Case
from fairgate.check.model import Model
from fairgate.core.numbers import COMPILED
from fairgate.core.setup import Setup
from fairgate.protocols.fair_k import Request, Token, TokenLocations
from fairgate.protocols.fair_k_bounded import FairKBounded, NumberedChild
from fairgate.scenario.manual import Flight, ManualNetwork
from fairgate.sim.config import Config
from fairgate.sim.run import simulate
from tests.paper.test_holes import steps_of
from tests.support.entry_order import most_entries_past
from tests.support.overtakes import bound, most_past

NAMES = ("fair_k", "fair_k_bounded")


def gate(n: int = 3, k: int = 2, reentry: int = 0) -> ManualNetwork:
    return ManualNetwork(FairKBounded, Setup(tuple(range(n)), k, options={"reentry": reentry}), slots=True)


def idle_at(network: ManualNetwork, me: int) -> tuple[int, ...]:
    """The slots of node me's idle tokens."""
    return tuple(slot for slot, _ in network.nodes[me].show()["idle"])


def come_and_go(network: ManualNetwork, me: int) -> None:
    network.acquire(me)
    network.deliver_all()
    network.release(me)
    network.deliver_all()


def deliver(network: ManualNetwork, dst: int, kind: type) -> None:
    """Deliver the oldest message of that kind to that node."""
    (index, *_) = [at for at, flight in enumerate(network.flight) if flight.dst == dst and isinstance(flight.msg, kind)]
    network.deliver(index)


def test_an_idle_holder_re_enters_up_to_the_limit_and_then_asks() -> None:
    network = gate(reentry=2)
    for _ in range(2):
        network.acquire(1)
        network.release(1)
    assert network.grants == [1, 1]
    network.acquire(1)
    assert network.grants == [1, 1]
    assert network.flight == [Flight(1, 0, Request(1))]
    network.deliver_all()  # node 1 gets turn 2, in the queue of token 0
    assert network.grants == [1, 1, 1]
    assert network.nodes[1].show()["idle"] == ((1, 2),)
    network.release(1)
    for _ in range(2):  # a new turn resets the count
        network.acquire(1)
        network.release(1)
    assert network.flight == []


def test_a_lone_node_gathers_all_tokens_and_then_needs_no_messages() -> None:
    network = gate(n=5, k=3, reentry=1)
    for _ in range(10):
        come_and_go(network, 4)
    assert idle_at(network, 4) == (0, 1, 2)
    for _ in range(100):
        network.acquire(4)
        network.release(4)
        assert network.flight == []
    assert network.grants == [4] * 110


def test_a_gate_with_one_peer_needs_no_messages() -> None:
    network = gate(n=1, k=1)
    for _ in range(5):
        network.acquire(0)
        network.release(0)
    assert network.grants == [0] * 5
    assert network.flight == []


def test_a_node_that_waits_for_one_token_passes_on_another_idle_one() -> None:
    network = gate(n=4)
    network.acquire(0)  # the coordinator takes turn 2, in its own queue
    network.acquire(1)  # turn 3 is in the queue whose token node 1 holds
    network.deliver_all()
    network.release(1)
    network.acquire(1)  # turn 4, behind node 0
    network.deliver_all()
    assert network.grants == [0, 1]
    assert (network.nodes[1].show()["turn"], idle_at(network, 1)) == (4, (1,))
    network.acquire(2)  # turn 5, behind node 1, which is waiting for another token
    network.deliver_all()
    assert network.grants == [0, 1, 2]
    network.release(0)
    network.deliver_all()
    assert network.grants == [0, 1, 2, 1]


def test_turn_numbers_tell_apart_the_children_of_two_places_in_one_queue() -> None:
    """Node 0 has the token, node 1 is queued behind it, and node 0 asks again. Then node 2 is queued behind node 0's
    new place, and its Child arrives first."""
    network = gate(k=1)
    network.acquire(1)
    deliver(network, 0, Request)
    deliver(network, 1, TokenLocations)
    network.acquire(0)
    deliver(network, 1, Request)
    deliver(network, 0, TokenLocations)
    network.acquire(2)
    deliver(network, 0, Request)
    old, new = (Flight(0, 0, NumberedChild(1, 1)), Flight(0, 0, NumberedChild(3, 2)))
    assert [flight for flight in network.flight if flight.dst == 0] == [old, new]
    network.deliver(network.flight.index(new))
    assert network.nodes[0].show()["child"] == 2
    network.deliver(network.flight.index(old))
    assert Flight(0, 1, Token(0, 0)) in network.flight
    for me in (1, 0, 2):
        network.deliver_all()
        network.release(me)
    assert network.grants == [1, 0, 2]


def test_a_node_that_has_yet_to_become_the_coordinator_defers_its_next_request() -> None:
    network = gate()
    network.acquire(2)
    deliver(network, 0, Request)
    deliver(network, 0, NumberedChild)
    deliver(network, 2, Token)
    network.release(2)
    network.acquire(2)
    assert [type(flight.msg) for flight in network.flight] == [TokenLocations]
    network.deliver_all()
    assert network.grants == [2, 2]
    assert idle_at(network, 2) == (0,)  # it had turns 2 and 3, and is now inside with token 1


# The bound.


def tight(protocol: str, reentry: int | None, seed: int) -> Config:
    """Every node loops much faster than a message travels, and some messages take thirty times as long as others."""
    options = {} if reentry is None else {"reentry": reentry}
    return Config(
        protocol,
        nodes=8,
        k=3,
        cs=0.00001,
        rate=100_000,
        latency="uniform:0,0.002",
        requests=400,
        seed=seed,
        faults="reorder:0.3",
        options=options,
    )


@pytest.mark.parametrize("reentry", [0, 2, 8])
def test_no_node_enters_more_often_than_the_bound(reentry: int) -> None:
    most = max(most_entries_past(steps_of(tight("fair_k_bounded", reentry, seed))) for seed in (1, 2, 3))
    assert reentry < most <= bound(8, 3, reentry)


def test_plain_fair_k_exceeds_the_bound() -> None:
    assert most_entries_past(steps_of(tight("fair_k", None, 1))) > bound(8, 3, 8)


def test_the_bound_in_systems_of_all_sizes() -> None:
    rng = random.Random(1)
    for seed in range(60 if COMPILED else 15):
        n = rng.randint(2, 7)
        k, reentry = rng.randint(1, n), rng.randint(0, 3)
        config = Config(
            "fair_k_bounded",
            nodes=n,
            k=k,
            cs=rng.choice([0.0, 0.00001, 0.001]),
            rate=rng.choice([1e3, 1e5]),
            latency=rng.choice(["0.001", "uniform:0,0.002"]),
            exponential_cs=rng.random() < 0.5,
            requests=60,
            seed=seed,
            faults=rng.choice(["", "reorder:0.3"]),
            give_up=rng.choice([0.0, 0.3]),
            give_up_after=0.003,
            options={"reentry": reentry, "parent_on_child": rng.random() < 0.5},
        )
        assert most_entries_past(steps_of(config)) <= bound(n, k, reentry), config


# Every run of a small case: (case, waiting node, other node, most entries of the other node).

SMALL = (
    (Case("fair_k_bounded", requests=2, options={"reentry": 0}), 2, 0, 1),
    (Case("fair_k_bounded", requests=2, options={"reentry": 1}), 2, 0, 2),
    (Case("fair_k_bounded", nodes=2, k=2, requests=3, options={"reentry": 0}), 0, 1, 2),
    (Case("fair_k_bounded", nodes=2, k=2, requests=6, options={"reentry": 1}), 0, 1, 4),
    (Case("fair_k_bounded", k=2, requests=2, options={"reentry": 0}), 2, 0, 2),  # the bound is 3, but requests run out
    (Case("fair_k_bounded", k=2, requests=2, options={"reentry": 0}), 0, 1, 2),
)


@pytest.mark.parametrize(("case", "waiter", "other", "most"), SMALL)
def test_the_bound_in_every_run_of_a_small_case(case: Case, waiter: int, other: int, most: int) -> None:
    """The bound is reached in every case that has enough requests."""
    assert most_past(Model(case), waiter, other) == most <= bound(case.nodes, case.k, case.options["reentry"])


def test_at_the_papers_load_the_bound_costs_no_messages() -> None:
    """At that load no token is idle for long: both need 8.0 messages per entry, within a hundredth or two."""
    plain, bounded = (simulate(Config(name, requests=300 if COMPILED else 60, seed=2)) for name in NAMES)
    assert bounded.violations == plain.violations == 0
    assert bounded.messages_per_entry <= 1.005 * plain.messages_per_entry
    assert bounded.wait_max <= 1.05 * plain.wait_max
