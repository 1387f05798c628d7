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
from fairgate.registry import stand
from fairgate.scenario.manual import Hand, Violation

PATIENCE = 200  # entries of others, in a system of a few nodes; the longest wait of any protocol here is 26
VETERANS = (
    0.1  # so often the one that is to wait has been alone for long: where requests bear numbers, its own are large
)
MOST_STATE = 100  # numbers in the key of a node; they need about 25

Move = Callable[[], object]


def besieged(protocol: type[Mutex], rng: random.Random, options: dict[str, Any] | None = None) -> int:
    """One node asks among others that never pause; how many entries it had to wait for."""
    n = rng.randint(3, 6)
    k = rng.randint(1, 2) if protocol.about.many else 1
    hand = Hand(
        stand(protocol), Setup(tuple(range(n)), k, options=options), protocol.about.slots, from_floats(rng.random)
    )
    if protocol.about.detectors:
        for me, peer in permutations(hand.setup.members, 2):
            hand.trust(me, peer)
        hand.deliver_all()
    victim = rng.randrange(n)
    others = [me for me in hand.nodes if me != victim]
    if rng.random() < VETERANS:
        for _ in range(2 * PATIENCE):
            hand.acquire(victim)
            hand.deliver_all()
            hand.release(victim)
            hand.deliver_all()
    for _ in range(rng.randint(0, 50)):
        crowd(hand, rng, others)
    before = len(hand.grants)
    hand.acquire(victim)
    while victim in hand.waiting:
        crowd(hand, rng, others)
        if len(hand.grants) - before > PATIENCE:
            raise Violation(f"starvation: node {victim} waits while others came in {PATIENCE} times")
    for me, node in hand.nodes.items():
        if size(node.key()) > MOST_STATE:
            raise Violation(f"memory: the state of node {me} has grown to {size(node.key())} numbers")
    return len(hand.grants) - before


def size(key: Any) -> int:
    return sum(map(size, key)) if isinstance(key, tuple) else 1


def crowd(hand: Hand, rng: random.Random, others: list[int]) -> None:
    """One move; who can ask does."""
    for me in others:
        if me not in hand.waiting and me not in hand.inside:
            hand.acquire(me)
    moves: list[Move] = [partial(hand.release, me) for me in hand.inside]
    moves += [partial(hand.deliver, index) for index in range(len(hand.flight))]
    if not moves:
        raise Violation(f"liveness: nothing moves any more, and nodes {sorted(hand.waiting)} wait")
    rng.choice(moves)()


def sieges(protocol: type[Mutex], seeds: range, options: dict[str, Any] | None = None) -> int:
    """Many of them; the longest wait, in entries of others. A breach names its seed."""
    longest = 0
    for seed in seeds:
        try:
            longest = max(longest, besieged(protocol, random.Random(seed), options))
        except Violation as broken:
            raise Violation(f"{broken} [seed {seed}]") from broken
    return longest
