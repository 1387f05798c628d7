"""What a client of Sigma counts: answers, votes, and replicas that have lost their memory.

The clients are the nodes after the replicas.
"""

from __future__ import annotations

import random

import pytest

from fairgate.core.units import SECOND
from fairgate.scenario.manual import ManualNetwork
from tests.support.dht_walk import MS
from tests.support.sigma_manual import ask, forget, network_of, node, reach, sent


@pytest.mark.parametrize("seed", range(10))
def test_the_totals_are_those_of_the_answers(seed: int) -> None:
    """A client keeps them up to date with every answer; `loaded` computes them from all of them."""
    rng = random.Random(seed)
    network = network_of(replicas=5)
    for client, replicas in ((5, (0, 1)), (6, (2, 3)), (7, (4,))):
        ask(network, client, *replicas)
    while network.flight:
        network.deliver(rng.randrange(len(network.flight)))
        for client in list(network.inside):
            network.release(client)
        for client in (5, 6, 7):
            before = totals(network, client)
            node(network, client).loaded()
            assert totals(network, client) == before
    assert len(network.grants) == 3


def totals(network: ManualNetwork, client: int) -> tuple[object, ...]:
    state = node(network, client)
    return state.mine, state.votes, state.heard, state.answered, dict(state.tally)


def test_a_vote_that_was_given_back_as_surplus_is_not_renewed() -> None:
    network = network_of(replicas=5, k=2, quorum=2, lease=3 * SECOND, resend=SECOND, retry=100)
    network.acquire(5)
    network.deliver_all()
    assert node(network, 5).votes == 2
    network.advance(1500 * MS)
    assert sent(network) == ["5>0 request", "5>1 request"]


def test_a_client_knows_until_its_request_is_over_that_a_replica_has_lost_its_memory() -> None:
    network = network_of(retry=100, resend=SECOND)
    ask(network, 3, 0, 1, 2)
    ask(network, 4, 0, 1, 2)
    client = node(network, 4)
    client.resp[0].yielded = 7  # the number of a vote of the former incarnation
    forget(network, 0)
    network.advance(10 * SECOND)
    reach(network, 4, 0)
    assert (client.resp[0].yielded, client.forgetful) == (0, True)
    network.release(3)
    network.deliver_all()
    network.release(4)
    assert not client.forgetful
