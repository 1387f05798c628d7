"""Random walks of one protocol: any interleaving of acquires, releases, cancels and deliveries can occur.

A walk drives a ManualNetwork (fairgate.scenario.manual), so messages overtake each other freely. A breach of a property
raises Violation, and so does a walk that ends while a node waits.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from fairgate.core.choose import from_floats
from fairgate.core.mutex import Mutex, asks_again
from fairgate.core.setup import Setup
from fairgate.registry import with_layers
from fairgate.scenario.manual import ManualNetwork, Violation

Move = tuple[Callable[..., Any], int]


def random_network(protocol: type[Mutex], rng: random.Random, options: dict[str, Any] | None = None) -> ManualNetwork:
    """A small system of random size."""
    n = rng.randint(2, 7)
    k = rng.randint(1, n) if protocol.about.many else 1
    setup = Setup(tuple(range(n)), k, epoch=rng.randint(0, 3), options=options)
    return ManualNetwork(with_layers(protocol), setup, protocol.about.slots, from_floats(rng.random))


def walk(
    network: ManualNetwork,
    rng: random.Random,
    requests: int = 3,
    cancels: float = 0.1,
    steps: int = 20_000,
    again: bool = False,
) -> None:
    """Each node makes `requests` requests; `cancels` is the share of moves in which one may be cancelled.

    With `again`, a node may leave and ask again in one step.
    """
    left = dict.fromkeys(network.nodes, requests)
    for _ in range(steps):
        moves: list[Move] = [
            (network.acquire, me)
            for me, more in left.items()
            if more and me not in network.waiting and me not in network.inside
        ]
        moves += [(network.release, me) for me in network.inside]
        if again:
            moves += [(network.again, me) for me in network.inside if left[me]]
        moves += [(network.deliver, index) for index in range(len(network.flight))]
        if rng.random() < cancels:
            moves += [(network.cancel, me) for me in [*network.waiting, *network.inside]]
        if not moves:
            break
        move, argument = rng.choice(moves)
        if move in (network.acquire, network.again):
            left[argument] -= 1
        move(argument)
    else:
        raise Violation(f"liveness: still busy after {steps} steps")
    if network.waiting:
        raise Violation(f"liveness: nothing moves any more, and nodes {sorted(network.waiting)} wait")


def walks(protocol: type[Mutex], seeds: range, options: dict[str, Any] | None = None) -> set[str]:
    """Run one walk per seed; returns the marks that they met. A Violation names the seed."""
    marks: set[str] = set()
    for seed in seeds:
        rng = random.Random(seed)
        network = random_network(protocol, rng, options)
        try:
            walk(network, rng, cancels=rng.choice([0.0, 0.1, 0.3]), again=asks_again(protocol))
        except Violation as broken:
            raise Violation(f"{broken} [seed {seed}]") from broken
        marks |= network.marks
    return marks
