"""Failure detectors, as the simulator plays them for protocols that listen to one (RF section 3).

Class T (trusting): at the start everybody suspects everybody; each pair comes to trust after a delay of
its own; who crashes is suspected by all after `detect`. Whoever is suspected after having been trusted has
really crashed. Class S: suspects nobody at the start but for a share of false suspicions (`doubt`), and
the crashed; one node that never crashes is never suspected.
"""

from functools import partial
from typing import TYPE_CHECKING

from fairgate.sim.stream import Stream

if TYPE_CHECKING:
    from fairgate.sim.engine import Engine


class Detectors:
    def __init__(self, detect: int, trust: int, doubt: float, stream: Stream) -> None:
        self.detect = detect  # ns from a crash to its suspicion
        self.trust = trust  # ns within which trust comes at the start
        self.doubt = doubt  # share of pairs with a false suspicion of class S at the start
        self.stream = stream

    def begin(self, engine: "Engine", mortal: set[int]) -> None:
        """Plan the first trust of all pairs; who will crash is known to the plan and to nobody else."""
        n = len(engine.nodes)
        immortal = min((me for me in range(n) if me not in mortal), default=0)
        for me in range(n):
            for peer in range(n):
                if peer != me:
                    self.meet(engine, me, peer, immortal)

    def meet(self, engine: "Engine", me: int, peer: int, immortal: int) -> None:
        if peer != immortal and self.stream.unit() < self.doubt:
            engine.plan(0, partial(tell, me=me, event="suspect", peer=peer, detector="S"))
        when = self.stream.below(self.trust + 1)
        engine.plan(when, partial(tell, me=me, event="trust", peer=peer, detector="T"))

    def crashed(self, engine: "Engine", victim: int) -> None:
        """The victim has just crashed: everybody will suspect it."""
        for me in range(len(engine.nodes)):
            if me != victim:
                for detector in ("T", "S"):
                    word = partial(tell, me=me, event="suspect", peer=victim, detector=detector)
                    engine.plan(engine.now + self.detect, word)


def tell(engine: "Engine", me: int, event: str, peer: int, detector: str) -> None:
    """A detector's word to one node. Class T never comes to trust a node that crashed unmet."""
    if engine.is_down(me) or (event == "trust" and engine.is_down(peer)):
        return
    engine.call(me, event, peer, detector)
