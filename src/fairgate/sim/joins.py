"""Joins and leaves on a dynamic ring (overlay/living.py) during a run.

First all nodes join through a contact; the workload begins when the ring is complete. A node that comes later, or comes
back without its memory, joins in the same way. A node that leaves says so, forwards what still arrives for a while, and
then stops.
"""

from functools import partial
from typing import TYPE_CHECKING, cast

from fairgate.overlay.living import Living
from fairgate.overlay.spans import CIRCLE
from fairgate.sim.churn import overlay_of
from fairgate.sim.stream import Stream

if TYPE_CHECKING:
    from fairgate.sim.engine import Engine, Plan

AGAIN = 5  # periods after which a node that is not on the ring yet gets another contact
LINGER = 20  # periods for which a node that has left forwards what still arrives
MOST_PERIODS = 1_000  # the ring must be complete by then


class Joins:
    def __init__(self, members: int, period: int, stream: Stream, work: "Plan") -> None:
        self.members = members  # nodes that join; those after them, up to the number of nodes, are clients only
        self.period = period  # of the overlay's upkeep
        self.stream = stream
        self.work = work  # called when the ring is complete
        self.opened = 0  # when that was
        self.looks = 0
        self.parted: set[int] = set()  # nodes that have left

    def begin(self, engine: "Engine") -> None:
        """Plan the joins: the first node starts the ring, and the others follow one by one within a few periods."""
        gap = max(1, 4 * self.period // self.members)
        for me in range(self.members):
            engine.plan(engine.now + me * gap, partial(self.join, me=me))
        engine.plan(engine.now + self.members * gap, self.look)

    def join(self, engine: "Engine", me: int) -> None:
        if self.is_outside(engine, me) or engine.is_down(me) or me in self.parted or living(engine, me).joined:
            return
        there = self.there(engine)
        contact = there[self.stream.below(len(there))] if there else me
        engine.call(me, "join", contact)
        engine.plan(engine.now + AGAIN * self.period, partial(self.join, me=me))

    def there(self, engine: "Engine") -> list[int]:
        up = [me for me in range(len(engine.nodes)) if not engine.is_down(me) and not self.is_outside(engine, me)]
        return [me for me in up if living(engine, me).joined]

    def is_outside(self, engine: "Engine", me: int) -> bool:
        return self.members <= me < engine.members

    def look(self, engine: "Engine") -> None:
        self.looks += 1
        if self.is_whole(engine):
            self.opened = engine.now
            engine.warmed_up()
            self.work(engine)
            engine.tune()
            engine.workload.begin(engine.now)
        elif self.looks < MOST_PERIODS:
            engine.plan(engine.now + self.period, self.look)
        else:
            engine.violate(f"ring: still incomplete after {MOST_PERIODS} periods")
            engine.discard()

    def is_whole(self, engine: "Engine") -> bool:
        """Is every node on the ring, with the titles of exactly the keys that it owns?"""
        there = self.there(engine)
        nodes = [living(engine, me) for me in there]
        owned = sum([past - first for node in nodes for first, past in node.owned()])
        return len(there) == self.members and owned == CIRCLE and all(node.titles == node.owned() for node in nodes)

    def leave(self, engine: "Engine", me: int) -> None:
        self.parted.add(me)
        engine.call(me, "leave")
        engine.plan(engine.now + LINGER * self.period, lambda engine: engine.crash(me))


def living(engine: "Engine", me: int) -> Living:
    return cast("Living", overlay_of(engine.nodes[me]))
