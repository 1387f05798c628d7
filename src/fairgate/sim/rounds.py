"""The workload of EE section VI: rounds that begin at set times.

In each round some nodes join and leave, some of those inside leave their gate, and some make requests.

The paper does not say how long a round is; it must be long enough for all messages of a round to arrive. It gives a
number of requests per round, but its figures can be reproduced only if that means per resource. Both readings are
supported (`per_resource`).
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from fairgate.core.ids import NIL
from fairgate.sim.churn import replace_nodes
from fairgate.sim.sampling import sample
from fairgate.sim.shares import Share
from fairgate.sim.stream import Stream
from fairgate.sim.workload import Workload

if TYPE_CHECKING:
    from fairgate.sim.engine import Engine


DRAWS = 4  # how many draws per request to try before looking at all nodes


@dataclass(frozen=True)
class Pace:
    """What happens in a round."""

    rounds: int
    requests: int  # in total, or for each resource if
    per_resource: bool
    length: int  # ns
    leave: float  # chance that a node that is inside at least one gate leaves one of them
    churn: int  # nodes that join or leave, half of them each
    detect: int  # ns until the neighbours of a failed node notice
    requesters: int  # this many nodes, drawn once, make requests and are never churned; 0: all make requests


class PacedRounds(Workload):
    def __init__(self, nodes: int, resources: int, stream: Stream, pace: Pace) -> None:
        Workload.__init__(self, (nodes + pace.churn // 2 * pace.rounds) * resources, 0, 0, stream)
        self.hold_random = True  # so that the engine calls `stay` for each entry
        self.total_left = 1  # until the last round is over
        self.pace = pace
        self.resources = resources
        self.keep_to(Share())
        self.round_number = 0
        self.staying: set[int] = set()  # seats that have entered; some may have left since
        self.salt = stream.below(1 << 53)
        self.streams: dict[int, Stream] = {}  # by gate: draws who asks, alike in all shares that run the gate
        everyone = list(range(nodes))
        self.requesters = sample(stream, everyone, pace.requesters) if pace.requesters else everyone
        asks = set(self.requesters)
        self.passers_by = [node for node in everyone if node not in asks]  # nodes that may be churned
        self.next_spare = nodes

    def keep_to(self, share: Share) -> None:
        """Run only the gates of this share. The rounds are still planned in full, so that all shares draw alike."""
        self.share = share
        self.first, self.every = share.number, share.of

    def stay(self, node: int) -> int:
        self.staying.add(node)
        return -1  # until a round makes it leave

    def begin(self, now: int) -> None:
        self.engine().plan(now, self.round)

    def done(self, node: int, now: int) -> None:
        pass

    def engine(self) -> "Engine":
        return cast("Engine", self.loop)

    def round(self, engine: "Engine") -> None:
        if self.round_number == self.pace.rounds:
            engine.end()
            return
        self.round_number += 1
        self.churn(engine)
        self.some_leave(engine)
        self.some_ask(engine)
        engine.plan(engine.now + self.pace.length, self.round)

    def some_leave(self, engine: "Engine") -> None:
        held: dict[int, list[int]] = {}
        inside = [seat for seat in sorted(self.staying) if engine.inside_at(seat) != NIL]
        self.staying = set(inside)
        for seat in sorted(self.share.meet(inside, engine.metrics.entries)):
            held.setdefault(seat // self.resources, []).append(seat)
        for seats in held.values():
            if self.stream.unit() < self.pace.leave:
                one = seats[self.stream.below(len(seats))]
                engine.release(one, engine.inside_at(one))  # a no-op if another share runs that gate

    def some_ask(self, engine: "Engine") -> None:
        counts = [self.pace.requests] * self.resources
        if not self.pace.per_resource:
            counts = [0] * self.resources
            for _ in range(self.pace.requests):
                counts[self.stream.below(self.resources)] += 1
        for gate in range(self.first, self.resources, self.every):
            at = engine.now
            for node in self.draw(engine, gate, counts[gate]):
                self.ask_at(node * self.resources + gate, at)
                at += 1  # one after the other: those at the same instant would enter in the order of their ids

    def draw(self, engine: "Engine", gate: int, count: int) -> list[int]:
        """Draw `count` of the nodes that may ask for this gate, because they neither wait nor are inside; or all."""
        stream = self.streams.get(gate)
        if stream is None:
            stream = self.streams[gate] = Stream(f"{self.salt}:{gate}")
        drawn: list[int] = []
        taken: set[int] = set()
        for _ in range(DRAWS * count):  # mostly a few draws are enough, and nobody has to look at all nodes
            if len(drawn) == count:
                return drawn
            node = self.requesters[stream.below(len(self.requesters))]
            if node not in taken and engine.is_idle(node * self.resources + gate):
                taken.add(node)
                drawn.append(node)
        free = [n for n in self.requesters if n not in taken and engine.is_idle(n * self.resources + gate)]
        return drawn + sample(stream, free, min(count - len(drawn), len(free)))

    def churn(self, engine: "Engine") -> None:
        if self.round_number > 1 and self.pace.churn:
            count = min(self.pace.churn // 2, len(self.passers_by))
            gone = sample(self.stream, self.passers_by, count)
            leaving = set(gone)
            come = list(range(self.next_spare, self.next_spare + count))
            self.next_spare += count
            self.passers_by = [node for node in self.passers_by if node not in leaving] + come
            replace_nodes(engine, self.round_number, gone, come, self.pace.detect)
