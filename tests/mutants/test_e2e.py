"""Mutants of End-to-End: each has one line wrong, and must break one of the named properties in random runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from types import ModuleType
from typing import Any

import pytest

from fairgate.mutation.deletions import rebased
from fairgate.protocols.e2e.fault_tolerant import E2EFT
from fairgate.protocols.e2e.protocol import E2E
from tests.mutants.mutate import mutant
from tests.paper.test_e2e_ft import (
    FAULTS,
    votes_after_a_lease,
    wins_with_an_expired_vote,
    with_a_later_stamp_of_before,
)
from tests.support.e2e_walk import PLAIN, QUICK, one_run

TWO = {"k", "grant"}  # two are inside, or one is granted twice
STUCK = {"hang", "storm"}

CLIENTS = {
    "an answer that the vote overtook cancels the vote": (
        "        if not m.vote and self.is_mine(m.replica):\n            return",
        "        if False:\n            return",
        STUCK,
    ),
    "a vote that was given back counts": (
        " or m.round != self.rounds[m.replica]:\n            return\n",
        ":\n            return\n",
        TWO,
    ),
    "half is a majority": ("len(self.keys) // 2 + 1", "len(self.keys) // 2", TWO),
    "the token leaves the queue behind": ("tuple(self.queue), self.clock())", "(), self.clock())", STUCK),
    "nobody yields": (
        "            if self.is_recalled(i):\n                self.yield_vote(i)\n",
        "            pass\n",
        STUCK,
    ),
}

REPLICAS = {
    "a replica votes twice": (
        "serve_waiting",
        "        elif r.vote == NIL:\n            self.cast",
        "        else:\n            self.cast",
        TWO,
    ),
    "a used vote is never free again": (
        "use_vote",
        "            r.vote = NIL\n\n    def set_holder",
        "            pass\n\n    def set_holder",
        STUCK,
    ),
    "a replica does not report its generation": (
        "respond",
        "owner, owner_stamp, r.generation))",
        "owner, owner_stamp, 0))",
        STUCK | TWO,
    ),
}

FAULTY = {
    "an owner ignores the end of its lease": (
        '            self.lose_cs("lease over")\n',
        "            self.holding = True\n",
        TWO | STUCK,
    ),
    "nobody asks again": (
        "            self.ask_all_again()\n            self.ask_later(",
        "            self.ask_later(",
        STUCK,
    ),
    "a replica never ends a promise": ("            self.promise_over(int(", "            str(int(", STUCK),
}

PROMISES = {
    "a promise is shorter than the lease": (
        'self.set_timer(f"{PROMISE}{i}", self.promise_time)',
        'self.set_timer(f"{PROMISE}{i}", self.lease // 4)',
        TWO,
    ),
    "a replica votes despite its promise": (
        'return self.is_armed(f"{PROMISE}{i}")',
        "return False",
        TWO,
    ),
}


def broken(protocol: Any, faults: str = "", seeds: Iterable[int] = range(200)) -> str:
    """The property that the first failing run breaks, or "" if the mutant survives."""
    for seed in seeds:
        if faults:
            spec, joins = FAULTS[faults]
            outcome = one_run(protocol, seed, replace(spec, options=QUICK, most_events=60_000), joins=joins)
        else:
            outcome = one_run(protocol, seed, PLAIN)
        if outcome.broken and not outcome.excused:
            return outcome.broken
    return ""


@pytest.mark.parametrize("name", CLIENTS)
def test_mutant_of_the_client_is_caught(name: str) -> None:
    old, new, expected = CLIENTS[name]
    assert broken(mutant("protocols.e2e.protocol", old, new).E2E) in expected


@pytest.mark.parametrize("name", REPLICAS)
def test_mutant_of_the_replica_is_caught(name: str) -> None:
    method, old, new, expected = REPLICAS[name]
    changed = vars(mutant("protocols.e2e.replica", old, new).Voter)[method]
    assert broken(type("Mutant", (E2E,), {method: changed})) in expected


@pytest.mark.parametrize("name", FAULTY)
def test_mutant_under_faults_is_caught(name: str) -> None:
    old, new, expected = FAULTY[name]
    protocol = mutant("protocols.e2e.fault_tolerant", old, new).E2EFT
    found = {broken(protocol, faults, range(60)) for faults in ("all", "long stays")}
    assert found & expected


def on_promises(promises: ModuleType) -> Any:
    """E2EFT loaded again on a mutant of its base, since a compiled E2EFT cannot be subclassed."""
    return rebased(E2EFT, "fairgate.protocols.e2e.promises", promises).E2EFT


@pytest.mark.parametrize("name", PROMISES)
def test_mutant_of_a_promise_is_caught(name: str) -> None:
    old, new, expected = PROMISES[name]
    protocol = on_promises(mutant("protocols.e2e.promises", old, new))
    assert {broken(protocol, faults, range(60)) for faults in ("all", "long stays")} & expected


def test_keeping_the_latest_stamp_hangs_a_node_that_lost_its_memory() -> None:
    """Stamps of a node that lost its memory restart if its own clock is behind those of others."""
    kept = on_promises(mutant("protocols.e2e.promises", "    def keep(", "    def unused("))
    assert not with_a_later_stamp_of_before(kept).inside


def test_a_client_that_wins_with_expired_votes_is_noticed() -> None:
    """Random runs hardly show it, because a client gives up an expired vote when it asks again."""
    old, new = "if self.is_mine(i) and self.ends[i] > self.now]", "if self.is_mine(i)]"
    assert wins_with_an_expired_vote(mutant("protocols.e2e.fault_tolerant", old, new).E2EFT)


def test_a_client_that_keeps_expired_votes_is_noticed() -> None:
    kept = mutant("protocols.e2e.fault_tolerant", "            self.learn(i, OTHER)  # the", "            pass  # the")
    assert votes_after_a_lease(kept.E2EFT) == 1


def test_the_originals_pass_on_the_same_seeds() -> None:
    assert broken(E2E) == ""
    assert {broken(E2EFT, faults, range(60)) for faults in ("all", "long stays")} == {""}
