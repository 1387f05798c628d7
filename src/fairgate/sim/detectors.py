"""Simulated failure detectors for protocols that use one (RF section 3).

Class T (trusting): at the start every node suspects every other. For each pair, trust comes after a random delay, or
not before the end of the run (`distrust`). A node that is suspected after it was trusted has really crashed.

Class S: at the start nobody is suspected, except for a share of false suspicions (`doubt`). One node that never crashes
is never suspected. A node may wait for a sign of trust from every node that S does not suspect, so a node that is
distrusted suspects the one that distrusts it; and the node that S never suspects trusts everybody.

Both suspect a crashed node after a delay (`detect`): a random one for each pair and class, unless all are to be equal.
"""

from functools import partial
from typing import TYPE_CHECKING

from fairgate.sim.stream import Stream

if TYPE_CHECKING:
    from fairgate.sim.engine import Engine


class Detectors:
    def __init__(self, detect: tuple[int, int], trust: int, doubt: float, distrust: float, stream: Stream) -> None:
        self.soonest, self.latest = detect  # ns from a crash until it is suspected
        self.trust = trust  # ns from the start within which every pair trusts each other
        self.doubt = doubt  # share of pairs that start with a false suspicion of class S
        self.distrust = distrust  # share of pairs in which one never comes to trust the other
        self.stream = stream

    def begin(self, engine: "Engine", mortal: set[int]) -> None:
        """Plan the first trust of all pairs. `mortal` are the nodes that will crash, unknown to the nodes."""
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
        if me != immortal and self.distrust > 0.0 and self.stream.unit() < self.distrust:
            engine.plan(0, partial(tell, me=peer, event="suspect", peer=me, detector="S"))
        else:
            engine.plan(when, partial(tell, me=me, event="trust", peer=peer, detector="T"))

    def crashed(self, engine: "Engine", victim: int) -> None:
        """Plan that every other node will suspect the victim, which has just crashed."""
        for me in range(len(engine.nodes)):
            if me != victim:
                for detector in ("T", "S"):
                    word = partial(tell, me=me, event="suspect", peer=victim, detector=detector)
                    engine.plan(engine.now + self.delay(), word)

    def delay(self) -> int:
        return self.soonest + (self.stream.below(self.latest - self.soonest + 1) if self.latest > self.soonest else 0)


def tell(engine: "Engine", me: int, event: str, peer: int, detector: str) -> None:
    """Give a detector's output to one node. Class T never trusts a node that crashed before it was first trusted."""
    if engine.is_down(me) or (event == "trust" and engine.is_down(peer)):
        return
    engine.call(me, event, peer, detector)
