"""BV95 with one token: how often others come in before somebody whom the token will come to."""

from collections import Counter
from random import Random

import pytest

from fairgate.core.setup import Setup
from fairgate.protocols.bv95 import BV95
from fairgate.scenario.manual import ManualNetwork


def first_of_each_pair(network: ManualNetwork) -> list[int]:
    """Which messages may come next: each pair's come in their order."""
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
    """Whom the token will come to: who has it, stands in its queue, or is kept by one of these."""
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
    """The most that any one other was inside while somebody waited who had joined."""
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
def test_plain_path_reversal_lets_nobody_in_twice_before_one_who_has_joined(n: int) -> None:
    assert max(most_entries_by_one(n, "none", seed) for seed in range(20)) == 1


@pytest.mark.parametrize("n", [4, 10])
def test_a_sorted_queue_lets_hardly_anybody_in_twice(n: int) -> None:
    """As often as there are others would be the bound, by what papers/bv95.md says of it."""
    assert max(most_entries_by_one(n, "sorted", seed) for seed in range(20)) <= 2


def test_an_appended_cache_does() -> None:
    assert max(most_entries_by_one(10, "append", seed) for seed in range(20)) > 2
