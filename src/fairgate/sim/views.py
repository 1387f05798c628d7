"""Simulated views of the membership, for nodes above `regenerate`.

After a crash, every living node gets the next view, without the dead nodes; crashes of one instant make one view. Each
node gets it after a random delay, but all get the views in the same order. There is never a view with fewer members
than the gate has permits: the gate then stands still.
"""

from functools import partial
from typing import TYPE_CHECKING

from fairgate.sim.stream import Stream

if TYPE_CHECKING:
    from fairgate.sim.engine import Engine


class Views:
    def __init__(self, detect: int, stream: Stream, excluded: set[int] | None = None) -> None:
        self.excluded = excluded  # who is no member; None: the dead nodes
        self.detect = detect  # ns from a crash until the last node gets the new view
        self.stream = stream
        self.number = 0
        self.members: tuple[int, ...] = ()  # of the latest view
        self.ordered = -1  # when a view was last ordered
        self.told: dict[int, int] = {}  # node -> when it gets the latest view

    def crashed(self, engine: "Engine", victim: int) -> None:
        self.order(engine)

    def order(self, engine: "Engine") -> None:
        """Plan the next view. It is made after everything else that was planned for this instant."""
        if self.ordered != engine.now:
            self.ordered = engine.now
            engine.plan(engine.now, self.make)

    def make(self, engine: "Engine") -> None:
        alive = tuple([me for me in range(len(engine.nodes)) if not engine.is_down(me)])
        members = alive
        if self.excluded is not None:
            members = tuple([me for me in engine.setup.members if me not in self.excluded])
        if len(members) < engine.setup.k:
            return
        self.number += 1
        self.members = members
        for me in alive:
            when = max(self.told.get(me, 0), engine.now + self.stream.below(self.detect + 1))
            self.told[me] = when
            engine.plan(when, partial(tell, me=me, number=self.number, members=members))

    def tell_newcomer(self, engine: "Engine", me: int) -> None:
        """Give the latest view to a node that was down when the others got it."""
        if self.told.get(me, 0) <= engine.now:
            tell(engine, me, self.number, self.members)


def tell(engine: "Engine", me: int, number: int, members: tuple[int, ...]) -> None:
    if not engine.is_down(me):
        engine.call(me, "view", number, members, ())
