"""Simulated views of the membership, for nodes above `regenerate`.

After a crash, every living node gets the next view, without the dead nodes. Each gets it after a random delay, but all
get the views in the same order. There is never a view with fewer members than the gate has permits: the gate then
stands still.
"""

from functools import partial
from typing import TYPE_CHECKING

from fairgate.sim.stream import Stream

if TYPE_CHECKING:
    from fairgate.sim.engine import Engine


class Views:
    def __init__(self, detect: int, stream: Stream) -> None:
        self.detect = detect  # ns from a crash until the last node gets the new view
        self.stream = stream
        self.number = 0
        self.told: dict[int, int] = {}  # node -> when it gets the latest view

    def crashed(self, engine: "Engine") -> None:
        """Plan the next view after a crash."""
        alive = tuple([me for me in range(len(engine.nodes)) if not engine.is_down(me)])
        if len(alive) < engine.setup.k:
            return
        self.number += 1
        for me in alive:
            when = max(self.told.get(me, 0), engine.now + self.stream.below(self.detect + 1))
            self.told[me] = when
            engine.plan(when, partial(tell, me=me, number=self.number, members=alive))


def tell(engine: "Engine", me: int, number: int, members: tuple[int, ...]) -> None:
    if not engine.is_down(me):
        engine.call(me, "view", number, members)
