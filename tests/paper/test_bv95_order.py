"""BV95 with one token: how often any one node enters before a request that has joined (papers/bv95.md, "One token")."""

from collections import Counter
from random import Random

import pytest

from fairgate.core.setup import Setup
from fairgate.protocols.bv95 import BV95
from fairgate.scenario.manual import ManualNetwork


def first_of_each_pair(network: ManualNetwork) -> list[int]:
    """The messages that may be delivered next: each pair of nodes keeps its order."""
    pairs: set[tuple[int, int]] = set()
    found = []
    for index, flight in enumerate(network.flight):
        if (flight.src, flight.dst) not in pairs:
            pairs.add((flight.src, flight.dst))
            found.append(index)
    return found


def step(network: ManualNetwork, chance: Random, eager: float) -> None:
    idle = [me for me in network.nodes if me not in network.waiting and me not in network.inside]
    if network.flight and chance.random() < 0.75:
        network.deliver(chance.choice(first_of_each_pair(network)))
    elif idle and (not network.inside or chance.random() < eager):
        network.acquire(chance.choice(idle))
    elif network.inside:
        network.release(chance.choice(list(network.inside)))


def joined(network: ManualNetwork) -> set[int]:
    """The nodes that the token is bound to reach: its holder, those in its queue, and those kept by any of these."""
    found = {flight.dst for flight in network.flight if flight.msg.tokens()}
    for flight in network.flight:
        found |= {r for _, r in getattr(flight.msg, "queue", ())}
    for me, node in network.nodes.items():
        if node.tokens():
            found |= {me, *node.show()["queue"]}
    todo = list(found)
    while todo:
        kept = set(network.nodes[todo.pop()].show()["kept"]) - found
        found |= kept
        todo += kept
    return found


def most_entries_by_one(n: int, cache: str, seed: int) -> int:
    """The most times that any one other node entered while a joined request waited."""
    chance = Random(seed)
    network = ManualNetwork(BV95, Setup(tuple(range(n)), 1, options={"cache": cache}), slots=True)
    before: dict[int, Counter[int]] = {}
    worst = 0
    for _ in range(1_000):
        known = len(network.grants)
        step(network, chance, eager=seed % 10 / 10)
        for who in network.grants[known:]:
            before.pop(who, None)
            for entries in before.values():
                entries[who] += 1
                worst = max(worst, entries[who])
        for me in joined(network) & network.waiting.keys():
            before.setdefault(me, Counter())
    return worst


@pytest.mark.parametrize("n", [4, 10])
def test_plain_path_reversal_lets_no_node_in_twice_before_a_joined_request(n: int) -> None:
    assert max(most_entries_by_one(n, "none", seed) for seed in range(20)) == 1


@pytest.mark.parametrize("n", [4, 10])
def test_a_sorted_queue_lets_a_node_in_at_most_twice_before_a_joined_request(n: int) -> None:
    """papers/bv95.md proves a weaker bound, as many times as there are other nodes."""
    assert max(most_entries_by_one(n, "sorted", seed) for seed in range(20)) <= 2


def test_an_appended_cache_lets_a_node_in_more_than_twice() -> None:
    assert max(most_entries_by_one(10, "append", seed) for seed in range(20)) > 2
