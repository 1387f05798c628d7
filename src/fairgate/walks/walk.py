"""A random walk of one protocol: every interleaving of acquires, releases, cancels and deliveries can happen.

Driven by hand (fairgate.scenario.manual), so messages overtake each other freely. Breaches raise Violation;
a walk that ends with somebody waiting raises one too.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from fairgate.core.choose import from_floats
from fairgate.core.mutex import Mutex
from fairgate.core.setup import Setup
from fairgate.registry import stand
from fairgate.scenario.manual import Hand, Violation

Move = tuple[Callable[..., Any], int]


def hand_for(protocol: type[Mutex], rng: random.Random, options: dict[str, Any] | None = None) -> Hand:
    """A small system of random size."""
    n = rng.randint(2, 7)
    k = rng.randint(1, n) if protocol.about.many else 1
    setup = Setup(tuple(range(n)), k, epoch=rng.randint(0, 3), options=options)
    return Hand(stand(protocol), setup, protocol.about.slots, from_floats(rng.random))


def walk(hand: Hand, rng: random.Random, requests: int = 3, cancels: float = 0.1, steps: int = 20_000) -> None:
    """`requests` of every node; a share of those that wait or are inside is cancelled."""
    left = dict.fromkeys(hand.nodes, requests)
    for _ in range(steps):
        moves: list[Move] = [
            (hand.acquire, me) for me, more in left.items() if more and me not in hand.waiting and me not in hand.inside
        ]
        moves += [(hand.release, me) for me in hand.inside]
        moves += [(hand.deliver, index) for index in range(len(hand.flight))]
        if rng.random() < cancels:
            moves += [(hand.cancel, me) for me in [*hand.waiting, *hand.inside]]
        if not moves:
            break
        move, argument = rng.choice(moves)
        if move == hand.acquire:
            left[argument] -= 1
        move(argument)
    else:
        raise Violation(f"liveness: still busy after {steps} steps")
    if hand.waiting:
        raise Violation(f"liveness: nothing moves any more, and nodes {sorted(hand.waiting)} wait")


def walks(protocol: type[Mutex], seeds: range, options: dict[str, Any] | None = None) -> set[str]:
    """Many walks; the marks that they met. A breach names its seed."""
    marks: set[str] = set()
    for seed in seeds:
        rng = random.Random(seed)
        hand = hand_for(protocol, rng, options)
        try:
            walk(hand, rng, cancels=rng.choice([0.0, 0.1, 0.3]))
        except Violation as broken:
            raise Violation(f"{broken} [seed {seed}]") from broken
        marks |= hand.marks
    return marks
