"""Random walks of a gate above `regenerate`: nodes crash, survivors learn of it later, and requests are cancelled."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from fairgate.core.choose import from_floats
from fairgate.core.layers import Layer, over
from fairgate.core.mutex import Mutex
from fairgate.core.setup import Setup
from fairgate.recovery.regenerate import Regenerate
from fairgate.scenario.manual import Violation
from fairgate.walks.lossy import LossyNetwork, calm_down, one_move
from tests.support.law import Lawful


class Mortal(LossyNetwork):
    """A LossyNetwork with views. Each node has a queue of views that it has not been told yet."""

    def begin(self, rng: random.Random) -> None:
        self.rng = rng
        self.number = 0
        self.untold: dict[int, list[tuple[int, tuple[int, ...]]]] = {me: [] for me in self.nodes}

    def die(self, me: int) -> None:
        self.crash(me)
        self.number += 1
        alive = tuple([other for other in self.nodes if other not in self.crashed])
        for other in alive:
            self.untold[other].append((self.number, alive))

    def tell_one(self) -> bool:
        waiting = [me for me, views in self.untold.items() if views and me not in self.crashed]
        if not waiting:
            return False
        me = self.rng.choice(waiting)
        self.step(me, "on_view", *self.untold[me].pop(0), ())
        return True


class LawfulMortal(Mortal, Lawful):
    """Checks the law as well (law.py): a clone loaded from the node's key takes every step too."""

    def step(self, me: int, call: str, *arguments: Any) -> None:
        if me not in self.crashed:
            super().step(me, call, *arguments)


def mortal_walk(
    protocol: type[Mutex],
    seed: int,
    layer: type[Layer] = Regenerate,
    kind: Callable[..., Mortal] = Mortal,
    options: dict[str, Any] | None = None,
) -> Mortal:
    """One walk. Raises Violation on a breach, or if a survivor is not served in the end."""
    rng = random.Random(seed)
    n = rng.randint(3, 6)
    k = rng.randint(1, n - 2) if protocol.about.many else 1
    setup = Setup(tuple(range(n)), k, epoch=1, options=options)
    chooser = from_floats(rng.random)
    network: Mortal
    if kind is LawfulMortal:
        network = kind(over(layer, protocol), setup, protocol.about.slots, chooser, {})
    else:
        network = kind(over(layer, protocol), setup, protocol.about.slots, chooser, census=False)
    network.begin(rng)
    left = dict.fromkeys(network.nodes, 3)
    deaths = sorted(rng.sample(range(100), rng.randint(1, n - k - 1) if n - k > 1 else 1))
    for step in range(100):
        if deaths and step == deaths[0]:
            deaths.pop(0)
            victim = rng.choice([me for me in network.nodes if me not in network.crashed])
            network.die(victim)
            left[victim] = 0
        if rng.random() < 0.2:
            network.tell_one()
        network.now += rng.randint(0, 5)
        one_move(network, rng, left)
    while network.tell_one():
        one_move(network, rng, left)
    try:
        calm_down(network, rng, left)
    except Violation as broken:
        raise Violation(f"{broken} [seed {seed}]") from broken
    return network
