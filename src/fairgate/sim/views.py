"""Agreed views of the membership, as the simulator plays them for nodes above `regenerate`.

Some time after a crash everybody alive is told the next view, without the dead, each at a moment of its own but all in
the same order. There is no view of fewer members than the gate has permits: then the gate stands still.
"""

from functools import partial
from typing import TYPE_CHECKING

from fairgate.sim.stream import Stream

if TYPE_CHECKING:
    from fairgate.sim.engine import Engine


class Views:
    def __init__(self, detect: int, stream: Stream) -> None:
        self.detect = detect  # ns from a crash to the last word of it
        self.stream = stream
        self.number = 0
        self.told: dict[int, int] = {}  # node -> when it is told of the last view

    def crashed(self, engine: "Engine") -> None:
        """Somebody has just crashed."""
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
