"""Tests the simulator's own checks: every invariant that it watches has a mutant that breaks it.

tests/mutants/test_<protocol>.py shows that random walks catch each wrong line. Here the simulator's checks are on
trial, and so are the bounds of FK's evaluation, which serve as the check of fairness.
"""

from __future__ import annotations

import pytest

from fairgate.core.choose import from_floats
from fairgate.core.layers import MakeNode
from fairgate.core.setup import Setup
from fairgate.registry import find_protocol
from fairgate.sim.engine import Engine
from fairgate.sim.latency import Latency, Uniform
from fairgate.sim.run import run
from fairgate.sim.stream import Stream
from fairgate.sim.summary import Result, summarise
from fairgate.sim.workload import Closed
from tests.mutants.mutate import mutant
from tests.paper.test_fair_k_evaluation import law

SECOND = 1_000_000_000


def simulated(make: MakeNode, slots: bool, seed: int, n: int = 6, k: int = 2) -> Result:
    """A small run with every check enabled."""
    engine = Engine(
        make,
        Setup(tuple(range(n)), k),
        Uniform(0, SECOND, Stream(f"{seed}:latency")),
        Closed(n, 5, SECOND, Stream(f"{seed}:workload"), rate=1),
        from_floats(Stream(f"{seed}:choices").unit),
        slots=slots,
    )
    engine.census_every = 1
    engine.patience = 1_000 * SECOND
    assert run(engine, None)
    return summarise(engine, "mutant", seed, 0.0, False)


MUTANTS = {
    "k": ("raymond", "Raymond", "self.perm_count >= self.n - self.k:", "self.perm_count >= self.n - self.k - 1:"),
    "slot": ("fair_k", "FairK", "Token(self.slot, self.fence)", "Token(0, self.fence)"),
    "fence": ("fair_k", "FairK", "        self.fence += 1\n", ""),
    "tokens": (
        "fair_k",
        "FairK",
        "        self.token_present = False\n        self.slot = NIL\n",
        "        self.slot = NIL\n",
    ),
    "coordinator": (
        "fair_k",
        "FairK",
        "        self.is_coordinator = False\n"
        "        self.token_locations = ()  # drop this reference first, so that `replaced` need not copy\n"
        "        self.counter_number = NIL\n",
        "",
    ),
    "liveness": ("fair_k", "FairK", "            self.send_token(m.r)  # FK:PC2", "            pass"),
    "grant": (
        "fair_k",
        "FairK",
        "        self.enter_cs(self.slot, self.fence)\n",
        "        self.enter_cs(self.slot, self.fence)\n        self.out.granted(self.request, self.slot, self.fence)\n",
    ),
    "assertion": ("fair_k", "FairK", "            self.child = NIL  # FK:RL2", "            pass"),
    "send": ("naimi_trehel", "NaimiTrehel", "        self.parent = m.r  # NT:PR4\n", ""),
}


@pytest.mark.parametrize("invariant", MUTANTS)
def test_every_invariant_is_broken_by_a_mutant(invariant: str) -> None:
    module, cls, old, new = MUTANTS[invariant]
    make = getattr(mutant(f"protocols.{module}", old, new), cls)
    k = 2 if make.about.many else 1
    broken = {
        line.partition(":")[0] for seed in range(10) for line in simulated(make, make.about.slots, seed, k=k).broken
    }
    assert invariant in broken


def test_a_run_whose_messages_circulate_ends() -> None:
    """The root returns a request to the node that made it, and that node then sends it to itself again and again."""
    changed = mutant("protocols.naimi_trehel", "self.next = m.r  # NT:PR2", "self.out.send(m.r, m)")
    (broken,) = simulated(changed.NaimiTrehel, True, 1, k=1).broken
    assert broken.startswith("liveness: no entry for 1000 s while ")


@pytest.mark.parametrize("protocol", sorted({module for module, *_ in MUTANTS.values()}))
def test_the_originals_break_none(protocol: str) -> None:
    make = find_protocol(protocol)
    k = 2 if make.about.many else 1
    assert [simulated(make, make.about.slots, seed, k=k).broken for seed in range(10)] == [()] * 10


def lan(make: MakeNode) -> Result:
    """A short run of FK's evaluation (N=100, k=3, rate 0.5), without its start-up."""
    engine = Engine(
        make,
        Setup(tuple(range(100)), 3),
        Latency(SECOND),
        Closed(100, 40, 10 * SECOND, Stream("1:workload"), rate=0.5),
        from_floats(Stream("1:choices").unit),
        slots=True,
        warmup=5,
    )
    engine.census_every = 10_000
    assert run(engine, None)
    return summarise(engine, "fair_k", 1, 0.0, False)


def is_fair(result: Result) -> bool:
    """The bounds of tests/paper/test_fair_k_evaluation.py."""
    expected = law(100, 3, 1, 10, 0.5)
    return abs(result.wait_mean - expected) < 0.01 * expected and result.spread < 24 and result.wait_max < 390


def test_one_queue_for_all_is_safe_and_live_but_not_fair() -> None:
    original, one_queue = (
        lan(make) for make in (find_protocol("fair_k"), mutant("protocols.fair_k", "(c + 1) % self.setup.k", "c").FairK)
    )
    assert is_fair(original)
    assert original.violations == one_queue.violations == 0
    assert original.entries == one_queue.entries == 4_000
    assert not is_fair(one_queue)
    assert one_queue.wait_max > 1_000  # with one token in use, a round takes three times as long
