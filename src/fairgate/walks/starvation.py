"""Starvation: one node waits while all the others ask again and again, for ever if need be.

Cases and walks with so many requests a node end in time, and with them everybody's wait: whoever is always passed
comes in when the others have had enough. Here they never have.
"""

import random
from collections.abc import Callable
from functools import partial
from itertools import permutations
from typing import Any

from fairgate.core.choose import from_floats
from fairgate.core.mutex import Mutex
from fairgate.core.setup import Setup
from fairgate.registry import with_layers
from fairgate.scenario.manual import ManualNetwork, Violation

PATIENCE = 200  # entries of others, in a system of a few nodes; the longest wait of any protocol here is 26
VETERANS = (
    0.1  # so often the one that is to wait has been alone for long: where requests bear numbers, its own are large
)
MOST_STATE = 100  # numbers in the key of a node; they need about 25

Move = Callable[[], object]


def entries_waited_for(protocol: type[Mutex], rng: random.Random, options: dict[str, Any] | None = None) -> int:
    """One node asks among others that never pause; how many entries it had to wait for."""
    n = rng.randint(3, 6)
    k = rng.randint(1, 2) if protocol.about.many else 1
    network = ManualNetwork(
        with_layers(protocol), Setup(tuple(range(n)), k, options=options), protocol.about.slots, from_floats(rng.random)
    )
    if protocol.about.detectors:
        for me, peer in permutations(network.setup.members, 2):
            network.trust(me, peer)
        network.deliver_all()
    victim = rng.randrange(n)
    others = [me for me in network.nodes if me != victim]
    if rng.random() < VETERANS:
        for _ in range(2 * PATIENCE):
            network.acquire(victim)
            network.deliver_all()
            network.release(victim)
            network.deliver_all()
    for _ in range(rng.randint(0, 50)):
        move_others(network, rng, others)
    before = len(network.grants)
    network.acquire(victim)
    while victim in network.waiting:
        move_others(network, rng, others)
        if len(network.grants) - before > PATIENCE:
            raise Violation(f"starvation: node {victim} waits while others came in {PATIENCE} times")
    for me, node in network.nodes.items():
        if size(node.key()) > MOST_STATE:
            raise Violation(f"memory: the state of node {me} has grown to {size(node.key())} numbers")
    return len(network.grants) - before


def size(key: Any) -> int:
    return sum(map(size, key)) if isinstance(key, tuple) else 1


def move_others(network: ManualNetwork, rng: random.Random, others: list[int]) -> None:
    """One move; who can ask does."""
    for me in others:
        if me not in network.waiting and me not in network.inside:
            network.acquire(me)
    moves: list[Move] = [partial(network.release, me) for me in network.inside]
    moves += [partial(network.deliver, index) for index in range(len(network.flight))]
    if not moves:
        raise Violation(f"liveness: nothing moves any more, and nodes {sorted(network.waiting)} wait")
    rng.choice(moves)()


def longest_wait(protocol: type[Mutex], seeds: range, options: dict[str, Any] | None = None) -> int:
    """Many of them; the longest wait, in entries of others. A breach names its seed."""
    longest = 0
    for seed in seeds:
        try:
            longest = max(longest, entries_waited_for(protocol, random.Random(seed), options))
        except Violation as broken:
            raise Violation(f"{broken} [seed {seed}]") from broken
    return longest
