"""Crashes on a ring whose peers keep copies for each other (recovery/homes.py): who learns of them, and when.

On a settled ring, all peers learn of a crash `detect` after it: the dead peers leave the ring, and the peers around
them are told. On a watched ring, every peer learns of it at a random moment within `detect`. On a dynamic ring,
nobody is told: a peer notices a crash when its neighbour stops answering.

A peer may find that an identity is lost. If the nodes stand above `regenerate`, all living peers then get a new view
without it, and a census rebuilds the gate. Losses that are found at one instant make one view.
"""

from functools import partial
from typing import TYPE_CHECKING

from fairgate.core.keyspace import place_of
from fairgate.overlay.full import Watched
from fairgate.overlay.ring import Ring
from fairgate.recovery.homes import Homes
from fairgate.sim.churn import overlay_of
from fairgate.sim.stream import Stream
from fairgate.sim.views import Views

if TYPE_CHECKING:
    from fairgate.sim.engine import Engine


class Takeovers:
    def __init__(self, detect: int, backups: int, stream: Stream, census: bool) -> None:
        self.detect = detect
        self.backups = backups
        self.stream = stream
        self.excluded: set[int] = set()  # identities that were lost
        self.views = Views(detect, stream, self.excluded) if census else None
        self.struck = -1  # when the latest crash was
        self.dead: list[int] = []  # crashed then
        self.polling = False

    def crashed(self, engine: "Engine", victim: int) -> None:
        """Plan that the peers learn of the crash. All crashes of one instant are one event to them."""
        if isinstance(overlay_of(engine.nodes[victim]), Watched):
            self.plan_words(engine, victim)
            return
        if self.struck != engine.now:
            self.struck = engine.now
            self.dead = []
            if engine.joins is not None:
                engine.plan(engine.now, partial(self.forget, dead=self.dead))
            else:
                engine.plan(engine.now + self.detect, partial(self.tell, dead=self.dead))
        self.dead.append(victim)

    def plan_words(self, engine: "Engine", victim: int) -> None:
        for me in range(len(engine.nodes)):
            if not engine.is_down(me):
                engine.plan(engine.now + self.stream.below(self.detect + 1), partial(self.say, me=me, victim=victim))

    def say(self, engine: "Engine", me: int, victim: int) -> None:
        if not engine.is_down(me):
            engine.call(me, "dead", victim)
            self.look(engine, [me])

    def forget(self, engine: "Engine", dead: list[int]) -> None:
        """Remove dead peers from those that start on the ring: if they come back, they have to join."""
        ring: Ring = engine.setup.shared["ring"]
        ring.remove_all(dead)
        if self.views is not None and not self.polling:
            self.polling = True
            self.poll(engine)

    def poll(self, engine: "Engine") -> None:
        self.look(engine, [me for me in range(len(engine.nodes)) if not engine.is_down(me)])
        engine.plan(engine.now + self.detect, self.poll)

    def tell(self, engine: "Engine", dead: list[int]) -> None:
        ring: Ring = engine.setup.shared["ring"]
        ring.remove_all(dead)
        near: dict[int, int] = {}  # peer -> a dead peer nearby
        for victim in dead:
            rank = ring.rank(place_of(victim))
            for step in range(min(self.backups, ring.size - 1) + 1):
                near[ring.ident(rank - step)] = victim
        told = [me for me in sorted(near) if not engine.is_down(me)]
        for me in told:
            engine.call(me, "dead", near[me])
        self.look(engine, told)

    def look(self, engine: "Engine", peers: list[int]) -> None:
        """Order a census if one of these peers has lost an identity. A newcomer learns which are excluded already."""
        if self.views is None:
            return
        for me in peers:
            lost = homes_of(engine, me).lost
            if lost <= self.excluded and lost:
                self.views.tell_newcomer(engine, me)
            elif lost:
                self.excluded |= lost
                self.views.order(engine)


def homes_of(engine: "Engine", me: int) -> Homes:
    rider = overlay_of(engine.nodes[me]).rider
    assert isinstance(rider, Homes)
    return rider
