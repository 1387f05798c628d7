"""Fair-k with a bound on re-entries, rule by rule, and the bound itself (papers/fair_k.md, "Bounded")."""

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


def idle_at(hand: ManualNetwork, me: int) -> tuple[int, ...]:
    """The slots of the idle tokens there."""
    return tuple(slot for slot, _ in hand.nodes[me].show()["idle"])


def come_and_go(hand: ManualNetwork, me: int) -> None:
    hand.acquire(me)
    hand.deliver_all()
    hand.release(me)
    hand.deliver_all()


def deliver(hand: ManualNetwork, dst: int, kind: type) -> None:
    """The oldest of that kind to that node."""
    (index, *_) = [at for at, flight in enumerate(hand.flight) if flight.dst == dst and isinstance(flight.msg, kind)]
    hand.deliver(index)


def test_an_idle_holder_comes_in_again_so_many_times_and_then_asks() -> None:
    hand = gate(reentry=2)
    for _ in range(2):
        hand.acquire(1)
        hand.release(1)
    assert hand.grants == [1, 1]
    hand.acquire(1)
    assert hand.grants == [1, 1]
    assert hand.flight == [Flight(1, 0, Request(1))]
    hand.deliver_all()  # its turn is number 2, in the queue of token 0
    assert hand.grants == [1, 1, 1]
    assert hand.nodes[1].show()["idle"] == ((1, 2),)
    hand.release(1)
    for _ in range(2):  # a turn counts anew
        hand.acquire(1)
        hand.release(1)
    assert hand.flight == []


def test_who_is_alone_gathers_all_tokens_and_needs_no_messages_any_more() -> None:
    hand = gate(n=5, k=3, reentry=1)
    for _ in range(10):
        come_and_go(hand, 4)
    assert idle_at(hand, 4) == (0, 1, 2)
    for _ in range(100):
        hand.acquire(4)
        hand.release(4)
        assert hand.flight == []
    assert hand.grants == [4] * 110


def test_one_peer_and_nobody_else() -> None:
    hand = gate(n=1, k=1)
    for _ in range(5):
        hand.acquire(0)
        hand.release(0)
    assert hand.grants == [0] * 5
    assert hand.flight == []


def test_an_idle_token_is_sent_on_by_one_who_waits_for_another() -> None:
    hand = gate(n=4)
    hand.acquire(0)  # the coordinator: turn 2, its own queue
    hand.acquire(1)  # turn 3 is in the queue of 1, whose token is its own
    hand.deliver_all()
    hand.release(1)
    hand.acquire(1)  # turn 4, behind 0
    hand.deliver_all()
    assert hand.grants == [0, 1]
    assert (hand.nodes[1].show()["turn"], idle_at(hand, 1)) == (4, (1,))
    hand.acquire(2)  # turn 5, behind 1, which waits
    hand.deliver_all()
    assert hand.grants == [0, 1, 2]
    hand.release(0)
    hand.deliver_all()
    assert hand.grants == [0, 1, 2, 1]


def test_children_of_two_places_in_one_queue_are_told_apart_by_their_numbers() -> None:
    """0 has the token, is asked for it, and asks again; then somebody comes behind its new place, and is told first."""
    hand = gate(k=1)
    hand.acquire(1)
    deliver(hand, 0, Request)
    deliver(hand, 1, TokenLocations)
    hand.acquire(0)
    deliver(hand, 1, Request)
    deliver(hand, 0, TokenLocations)
    hand.acquire(2)
    deliver(hand, 0, Request)
    old, new = (Flight(0, 0, NumberedChild(1, 1)), Flight(0, 0, NumberedChild(3, 2)))
    assert [flight for flight in hand.flight if flight.dst == 0] == [old, new]
    hand.deliver(hand.flight.index(new))
    assert hand.nodes[0].show()["child"] == 2
    hand.deliver(hand.flight.index(old))
    assert Flight(0, 1, Token(0, 0)) in hand.flight
    for me in (1, 0, 2):
        hand.deliver_all()
        hand.release(me)
    assert hand.grants == [1, 0, 2]


def test_who_is_still_to_become_the_coordinator_puts_its_next_request_off() -> None:
    hand = gate()
    hand.acquire(2)
    deliver(hand, 0, Request)
    deliver(hand, 0, NumberedChild)
    deliver(hand, 2, Token)
    hand.release(2)
    hand.acquire(2)
    assert [type(flight.msg) for flight in hand.flight] == [TokenLocations]
    hand.deliver_all()
    assert hand.grants == [2, 2]
    assert idle_at(hand, 2) == (0,)  # it is inside with token 1: turn 3 was its own, and so was turn 2


# The bound.


def tight(protocol: str, reentry: int | None, seed: int) -> Config:
    """Everybody in a loop much shorter than a message, and some messages thirty times as slow as others."""
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
def test_nobody_comes_in_more_often_than_the_bound(reentry: int) -> None:
    most = max(most_entries_past(steps_of(tight("fair_k_bounded", reentry, seed))) for seed in (1, 2, 3))
    assert reentry < most <= bound(8, 3, reentry)


def test_plain_fair_k_breaks_it() -> None:
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


# Every run of a small case: (case, who waits, who comes in, how often at most).

SMALL = (
    (Case("fair_k_bounded", requests=2, options={"reentry": 0}), 2, 0, 1),
    (Case("fair_k_bounded", requests=2, options={"reentry": 1}), 2, 0, 2),
    (Case("fair_k_bounded", nodes=2, k=2, requests=3, options={"reentry": 0}), 0, 1, 2),
    (Case("fair_k_bounded", nodes=2, k=2, requests=6, options={"reentry": 1}), 0, 1, 4),
    (Case("fair_k_bounded", k=2, requests=2, options={"reentry": 0}), 2, 0, 2),  # of 3: the others need more requests
    (Case("fair_k_bounded", k=2, requests=2, options={"reentry": 0}), 0, 1, 2),
)


@pytest.mark.parametrize(("case", "waiter", "other", "most"), SMALL)
def test_the_bound_in_every_run_of_a_small_case(case: Case, waiter: int, other: int, most: int) -> None:
    """And it is met, but where there are too few requests."""
    assert most_past(Model(case), waiter, other) == most <= bound(case.nodes, case.k, case.options["reentry"])


def test_at_the_papers_load_it_needs_no_more_messages() -> None:
    """There no token is idle for long; 8.0 an entry, to a hundredth or two."""
    plain, bounded = (simulate(Config(name, requests=300 if COMPILED else 60, seed=2)) for name in NAMES)
    assert bounded.violations == plain.violations == 0
    assert bounded.messages_per_entry <= 1.005 * plain.messages_per_entry
    assert bounded.wait_max <= 1.05 * plain.wait_max
