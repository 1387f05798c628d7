"""Starvation tests: one node waits while all the others make requests without end.

In cases and walks with a limited number of requests per node, a node that is always overtaken still enters when the
others have used up theirs. Here they never do.
"""

import random
from collections.abc import Callable
from functools import partial
from itertools import permutations
from typing import Any

from fairgate.core.choose import from_floats
from fairgate.core.mutex import Mutex, asks_again
from fairgate.core.setup import Setup
from fairgate.registry import with_layers
from fairgate.scenario.manual import ManualNetwork, Violation

PATIENCE = 200  # entries of other nodes; the longest wait of any protocol here, in a system of a few nodes, is 26
VETERANS = 0.1  # how often the waiting node has made many requests before, so that any numbers in them are large
MOST_STATE = 100  # numbers in the key of a node; about 25 are needed

Move = Callable[[], object]


def entries_waited_for(protocol: type[Mutex], rng: random.Random, options: dict[str, Any] | None = None) -> int:
    """Let one node request while the others never pause; returns how many entries of others it had to wait for."""
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
    again = asks_again(protocol)
    for _ in range(rng.randint(0, 50)):
        move_others(network, rng, others, again)
    before = len(network.grants)
    network.acquire(victim)
    while victim in network.waiting:
        move_others(network, rng, others, again)
        if len(network.grants) - before > PATIENCE:
            raise Violation(f"starvation: node {victim} waits while others entered {PATIENCE} times")
    for me, node in network.nodes.items():
        if size(node.key()) > MOST_STATE:
            raise Violation(f"memory: the state of node {me} has grown to {size(node.key())} numbers")
    return len(network.grants) - before


def size(key: Any) -> int:
    return sum(map(size, key)) if isinstance(key, tuple) else 1


def move_others(network: ManualNetwork, rng: random.Random, others: list[int], again: bool) -> None:
    """Let every idle node among the others request, then make one random move."""
    for me in others:
        if me not in network.waiting and me not in network.inside:
            network.acquire(me)
    moves: list[Move] = [partial(network.release, me) for me in network.inside]
    moves += [partial(network.again, me) for me in network.inside if again and me in others]
    moves += [partial(network.deliver, index) for index in range(len(network.flight))]
    if not moves:
        raise Violation(f"liveness: nothing moves any more, and nodes {sorted(network.waiting)} wait")
    rng.choice(moves)()


def longest_wait(protocol: type[Mutex], seeds: range, options: dict[str, Any] | None = None) -> int:
    """The longest wait over all seeds, in entries of other nodes. A Violation names the seed."""
    longest = 0
    for seed in seeds:
        try:
            longest = max(longest, entries_waited_for(protocol, random.Random(seed), options))
        except Violation as broken:
            raise Violation(f"{broken} [seed {seed}]") from broken
    return longest
