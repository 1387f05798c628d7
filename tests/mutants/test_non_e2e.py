"""Mutants of Non End-to-End: each must break one of the named properties in random runs in virtual time."""

from __future__ import annotations

from typing import Any

import pytest

from fairgate.core.mutex import Mutex
from fairgate.mutation.deletions import rebased
from fairgate.protocols.non_e2e.protocol import NonE2E
from fairgate.walks.dht import MS, SECOND, Conditions, one_run, over_overlay
from tests.mutants.mutate import caught, mutant
from tests.paper.test_non_e2e import tables_disagree

FAST = Conditions(latency=(0, 1_000 * MS), think=100 * MS, patience=600 * SECOND)


def walker(protocol: type[Mutex], seeds: range, options: dict[str, Any] | None) -> None:
    for seed in seeds:
        one_run(over_overlay("strides", protocol), seed, FAST, options)


MUTANTS = {
    "a minority is enough": (
        "        if votes >= self.terms.quorum:",
        "        if votes >= self.terms.quorum - 1:",
        {"k"},
    ),
    "a vote that was given back still counts": (
        "ask.heard = ask.vote = ask.wanted = False\n        ask.holder = NIL\n        self.voted -= 1\n",
        "ask.heard = ask.wanted = False\n        ask.holder = NIL\n",
        {"k", "liveness"},
    ),
    "a requester ignores that an earlier request wants its vote": (
        "        if m.wanted:\n            ask.wanted = True\n",
        "",
        {"liveness"},
    ),
    "RELEASE does not delete entries": (
        "        self.drop_entry(m.replica)\n",
        "",
        {"liveness"},
    ),
    "RELEASE drops the queues it has gathered": (
        "m.with_queue(tuple(merged(entry.queue, m.queue)), m.keeper)",
        "m.with_queue((), m.keeper)",
        {"liveness"},
    ),
    "an intercepted request is not kept": (
        "        keep_in(entry, m.asked)\n",
        "",
        {"liveness"},
    ),
    "a request that should pass the entries is kept again": (
        "        if m.past:\n            return m\n",
        "",
        {"liveness"},
    ),
}

OF_THE_REPLICA = {
    "a replica does not remember that an earlier request wants its vote": (
        "            replica.wanted = True\n",
        "",
        {"liveness"},
    ),
    "a replica does not merge the gathered queue": (
        "        replica.queue = merged(replica.queue, m.queue)\n        if m.over:\n",
        "        if m.over:\n",
        {"liveness"},
    ),
    "a replica votes for two": (
        "        if not replica.owner:\n",
        "        if replica.queue:\n",
        {"k"},
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_caught(name: str) -> None:
    old, new, expected = MUTANTS[name]
    assert caught(mutant("protocols.non_e2e.protocol", old, new), "NonE2E", seeds=600, walker=walker) in expected


@pytest.mark.parametrize("name", OF_THE_REPLICA)
def test_mutant_of_the_replica_is_caught(name: str) -> None:
    old, new, expected = OF_THE_REPLICA[name]
    changed = mutant("protocols.non_e2e.replica", old, new)
    module = rebased(NonE2E, "fairgate.protocols.non_e2e.replica", changed)
    assert caught(module, "NonE2E", seeds=600, walker=walker) in expected


def test_nodes_that_keep_each_others_requests_wait_forever() -> None:
    changed = mutant("protocols.non_e2e.protocol", "        if src == entry.next:", "        if False:")
    assert list(tables_disagree(changed.NonE2E).inside) == []
