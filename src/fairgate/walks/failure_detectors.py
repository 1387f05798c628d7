"""Random walks for protocols with failure detectors of classes T and S: nodes crash, and the detectors react.

One node is immortal: the one that S never suspects. Everything else is random, within what the two classes promise:
the order in which T begins to trust nodes, which nodes S wrongly suspects during the initialization, which nodes crash
and when, and when each detector notices. As RF's theorem requires, a node crashes only after its own initialization.

Trust is full or sparse. With full trust, the T detector of any node may begin to trust any other at any moment. With
sparse trust, only that of the immortal node may; the others begin to trust most nodes only when nothing else is left to
happen, and by then never trust those that have crashed.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from itertools import permutations
from typing import Any

from fairgate.core.mutex import Mutex
from fairgate.core.setup import Setup
from fairgate.scenario.manual import ManualNetwork, Violation

Pair = tuple[int, int]  # (watching node, watched node)
Move = Callable[[], object]


class Oracle:
    """The detectors of all nodes, and what they may do next."""

    def __init__(self, network: ManualNetwork, rng: random.Random, sparse: bool) -> None:
        self.network = network
        self.immortal = rng.choice(network.setup.members)
        pairs = list(permutations(network.setup.members, 2))
        late = [pair for pair in pairs if sparse and pair[0] != self.immortal and rng.random() < 0.7]
        self.untrusted = [pair for pair in pairs if pair not in late]
        self.late = late
        wrong = rng.random()
        self.to_suspect = [pair for pair in pairs if pair[1] != self.immortal and rng.random() < wrong]  # by S
        self.suspected: list[Pair] = []  # wrongly, by S
        self.to_notice: list[tuple[int, int, str]] = []  # (node, victim, detector): crashes not noticed yet

    def ready(self, me: int) -> bool:
        return bool(self.network.nodes[me].show()["ready"])

    def mortals(self) -> list[int]:
        """The nodes that may crash now."""
        live = [me for me in self.network.nodes if me not in self.network.crashed and me != self.immortal]
        return [me for me in live if self.ready(me)]

    def moves(self) -> list[Move]:
        moves: list[Move] = [partial(self.trust, pair) for pair in self.untrusted]
        moves += [partial(self.suspect, pair) for pair in self.to_suspect if not self.ready(pair[0])]
        moves += [partial(self.think_better, pair) for pair in self.suspected if not self.ready(pair[0])]
        moves += [partial(self.notice, crash) for crash in self.to_notice]
        return moves

    def trust_late(self) -> bool:
        """Allow the trust that was put off: class T eventually trusts every correct node. False if there is none."""
        self.untrusted = [pair for pair in self.late if pair[1] not in self.network.crashed]
        self.late = []
        return bool(self.untrusted)

    def trust(self, pair: Pair) -> None:
        self.untrusted.remove(pair)
        self.network.trust(*pair, "T")

    def suspect(self, pair: Pair) -> None:
        self.to_suspect.remove(pair)
        if pair[1] not in self.network.crashed:
            self.suspected.append(pair)
        self.network.suspect(*pair, "S")

    def think_better(self, pair: Pair) -> None:
        self.suspected.remove(pair)
        self.network.trust(*pair, "S")

    def crash(self, victim: int) -> None:
        self.network.crash(victim)
        self.suspected = [pair for pair in self.suspected if pair[1] != victim]
        watchers = [me for me in self.network.nodes if me not in self.network.crashed]
        self.to_notice += [(me, victim, detector) for me in watchers for detector in "TS"]

    def notice(self, crash: tuple[int, int, str]) -> None:
        """From now on this detector suspects the victim forever."""
        self.to_notice.remove(crash)
        me, victim, detector = crash
        if detector == "T":
            self.untrusted = [pair for pair in self.untrusted if pair != (me, victim)]
        else:
            self.to_suspect = [pair for pair in self.to_suspect if pair != (me, victim)]
        self.network.suspect(me, victim, detector)


def fd_walk(network: ManualNetwork, rng: random.Random, sparse: bool, requests: int = 3, steps: int = 20_000) -> None:
    oracle = Oracle(network, rng, sparse)
    left = dict.fromkeys(network.nodes, requests)
    crashes = rng.randint(1, network.setup.n - 1)
    eagerness = rng.choice([0.01, 0.03, 0.1])
    cancels = rng.choice([0.0, 0.1])

    def acquire(me: int) -> None:
        left[me] -= 1
        network.acquire(me)

    for _ in range(steps):
        if len(network.crashed) < crashes and rng.random() < eagerness and (mortals := oracle.mortals()):
            oracle.crash(rng.choice(mortals))
        idle = [
            me for me in left if me not in network.waiting and me not in network.inside and me not in network.crashed
        ]
        moves: list[Move] = [partial(acquire, me) for me in idle if left[me]]
        moves += [partial(network.release, me) for me in network.inside]
        moves += [partial(network.deliver, index) for index in range(len(network.flight))]
        moves += oracle.moves()
        if rng.random() < cancels:
            moves += [partial(network.cancel, me) for me in [*network.waiting, *network.inside]]
        if moves:
            rng.choice(moves)()
        elif not oracle.trust_late():
            break
    else:
        raise Violation(f"liveness: still busy after {steps} steps")
    if network.waiting:
        raise Violation(f"liveness: nothing moves any more, and nodes {sorted(network.waiting)} wait")


def fd_walked(protocol: type[Mutex], seed: int, sparse: bool, options: dict[str, Any] | None = None) -> ManualNetwork:
    """One walk of a small system of random size. A Violation names the seed."""
    rng = random.Random(seed)
    n = rng.randint(2, 7)
    network = ManualNetwork(
        protocol, Setup(tuple(range(n)), rng.randint(1, n - 1), options=options), protocol.about.slots
    )
    try:
        fd_walk(network, rng, sparse)
    except Violation as broken:
        raise Violation(f"{broken} [seed {seed}, {'sparse' if sparse else 'full'} trust]") from broken
    return network


def fd_walks(protocol: type[Mutex], seeds: range, options: dict[str, Any] | None = None) -> set[str]:
    """Run two walks per seed, with full and with sparse trust; returns the marks that they met."""
    marks: set[str] = set()
    for seed in seeds:
        for sparse in (False, True):
            marks |= fd_walked(protocol, seed, sparse, options).marks
    return marks


def hangs(protocol: type[Mutex], seeds: range, sparse: bool) -> int:
    """How many walks end while a node waits. Any other violation is raised."""
    count = 0
    for seed in seeds:
        try:
            fd_walked(protocol, seed, sparse)
        except Violation as broken:
            if not str(broken).startswith("liveness"):
                raise
            count += 1
    return count
