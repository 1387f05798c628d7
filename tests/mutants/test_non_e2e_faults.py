"""Mutants of Non End-to-End's leases and repairs: each must break one of the named properties."""

from __future__ import annotations

from typing import Any

import pytest

from fairgate.core.mutex import Mutex
from fairgate.mutation.deletions import rebased
from fairgate.protocols.non_e2e.fault_tolerant import VOTE, NonE2EFaults
from fairgate.protocols.non_e2e.state import Ask, Replica
from fairgate.scenario.manual import ManualNetwork, Violation
from fairgate.walks.dht import SECOND, Conditions, one_run, over_overlay
from tests.mutants.mutate import caught, mutant
from tests.paper.test_non_e2e import take
from tests.paper.test_non_e2e_faults import HOLD, LEASE, drawn, key_moves_onto_the_path

LEASES = {"lease": 3 * SECOND}
STORM = Conditions(crashes=1, resets=1, loss=0.1, dup=0.1, until=6 * SECOND, stay=2 * SECOND, patience=600 * SECOND)
SILENCE = Conditions(loss=0.7, until=30 * SECOND, stay=20 * SECOND, patience=900 * SECOND)
HEARD = Conditions(crashes=1, detect=2 * SECOND, until=6 * SECOND, patience=600 * SECOND)


def storm(protocol: type[Mutex], seeds: range, options: dict[str, Any] | None) -> None:
    for seed in seeds:
        one_run(over_overlay("strides", protocol), seed, STORM, LEASES)


def heard(protocol: type[Mutex], seeds: range, options: dict[str, Any] | None) -> None:
    for seed in seeds:
        one_run(over_overlay("strides", protocol), seed, HEARD)


def silence(protocol: type[Mutex], seeds: range, options: dict[str, Any] | None) -> None:
    for seed in seeds:
        one_run(over_overlay("strides", protocol), seed, SILENCE, LEASES)


MUTANTS = {
    "a requester counts a vote longer than its lease": (
        "lease.questions[m.n] + self.lease)",
        "self.now + 9 * self.lease)",
        {"k"},
        silence,
    ),
    "a Ping renews for less than a third of a lease": (
        '        if held:\n            self.set_timer(f"{VOTE}{m.replica}", self.hold)\n',
        '        if held:\n            self.set_timer(f"{VOTE}{m.replica}", self.hold // 9)\n',
        {"k", "liveness"},
        storm,
    ),
    "a replica never ends a lease": (
        '        if replica.owner and self.lease:\n            self.set_timer(f"{VOTE}{number}", self.hold)',
        "        pass",
        {"liveness"},
        storm,
    ),
    "a Ping extends the lease only at the requester": (
        '        if held:\n            self.set_timer(f"{VOTE}{m.replica}", self.hold)\n',
        "",
        {"k"},
        storm,
    ),
}
OF_MENDING = {
    "a waiting requester asks only once": (
        "        if self.may_be_lost():\n            self.ask_later()\n",
        "        pass\n",
        {"liveness"},
        storm,
    ),
    "crash reports are ignored": (
        "        self.crashed.add(peer)\n",
        "        return\n",
        {"liveness"},
        heard,
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_caught(name: str) -> None:
    old, new, expected, walker = MUTANTS[name]
    assert (
        caught(mutant("protocols.non_e2e.fault_tolerant", old, new), "NonE2EFaults", seeds=400, walker=walker)
        in expected
    )


@pytest.mark.parametrize("name", OF_MENDING)
def test_mutant_of_mending_is_caught(name: str) -> None:
    old, new, expected, walker = OF_MENDING[name]
    changed = mutant("protocols.non_e2e.mending", old, new)
    module = rebased(NonE2EFaults, "fairgate.protocols.non_e2e.mending", changed)
    assert caught(module, "NonE2EFaults", seeds=400, walker=walker) in expected


def test_a_path_of_which_the_rest_stays_keeps_later_requests() -> None:
    changed = mutant(
        "protocols.non_e2e.protocol", "                self.out.send(entry.next, self.clean_up(entry))\n", ""
    )
    assert list(key_moves_onto_the_path(changed.NonE2E).inside) == []


# Two rules of leases, each left out in a run by hand. Node 7 plays the replica, and nodes 1 and 2 ask.


class CountsAtOnce(NonE2EFaults):
    """A vote counts as soon as it arrives, before the replica has confirmed it."""

    def take_vote(self, src: int, replica: int, ask: Ask) -> None:
        NonE2EFaults.take_vote(self, src, replica, ask)
        ask.vote = True
        self.leases[replica].until = self.now + self.lease


def late_vote(protocol: type[NonE2EFaults]) -> ManualNetwork:
    """The GRANTREQ of a vote for node 1 arrives after the vote has expired and the next vote has let node 2 in."""
    network = drawn({1: 7, 2: 7}, protocol, lease=LEASE)
    network.acquire(1)
    take(network, 1, 7)
    late = network.flight.pop()
    network.advance(HOLD)
    network.flight.clear()
    network.acquire(2)
    network.deliver_all()
    assert list(network.inside) == [2]
    network.flight.append(late)
    network.deliver_all()
    return network


def test_a_vote_that_counts_before_it_is_confirmed_lets_two_in() -> None:
    assert list(late_vote(NonE2EFaults).inside) == [2]
    with pytest.raises(Violation, match="k: 2 inside"):
        late_vote(CountsAtOnce)


class ShortAtFirst(NonE2EFaults):
    """Until the first Ping arrives, the replica promises its vote for only a third of a lease."""

    def vote(self, number: int, replica: Replica) -> None:
        before = replica.owner
        NonE2EFaults.vote(self, number, replica)
        if replica.owner and replica.owner != before:
            self.set_timer(f"{VOTE}{number}", self.lease // 3)


def test_a_shorter_first_promise_keeps_nodes_out() -> None:
    """Messages take nearly a third of a lease, so the vote expires before GRANTREQ and then Ping have arrived."""
    slow = Conditions(requests=1, latency=(3 * LEASE // 10, 3 * LEASE // 10), patience=300 * SECOND)
    assert one_run(over_overlay("full", NonE2EFaults), 0, slow, LEASES).entries > 0
    with pytest.raises(Violation, match="liveness"):
        one_run(over_overlay("full", ShortAtFirst), 0, slow, LEASES)
