"""Who asks when, how long they stay, and when they give up."""

from fairgate.core.numbers import numbers
from fairgate.core.units import SECOND
from fairgate.sim.events import ACQUIRE
from fairgate.sim.loop import Loop
from fairgate.sim.sampling import sample
from fairgate.sim.stream import Stream


class Workload:
    """A node has one request at a time. `left` counts the requests that each node has still to make."""

    def __init__(self, n: int, requests: int, hold: int, stream: Stream) -> None:
        self.n = n
        self.loop = Loop(0)  # the engine, once it has begun
        self.left = numbers(n, requests)
        self.total_left = n * requests
        self.planned = numbers(n)  # requests of each node that are planned and not yet made
        self.hold = hold  # ns inside
        self.stream = stream
        self.give_up_share = 0.0
        self.give_up_mean = 0.0
        self.hold_random = False

    def begin(self, now: int) -> None:
        """Plan the first requests."""
        raise NotImplementedError

    def done(self, node: int, now: int) -> None:
        """A request of this node is over; plan its next one, if there is one."""
        raise NotImplementedError

    def ask_at(self, node: int, time: int) -> None:
        """Plan the node's next request."""
        self.planned[node] = 1
        self.loop.push(time, ACQUIRE, node, time, None)

    def arrived_at(self, node: int, time: int) -> None:
        """Plan a request that may have arrived before now, and stood in line: its wait counts from then."""
        self.planned[node] = 1
        self.loop.push(max(time, self.loop.now), ACQUIRE, node, time, None)

    def asking(self) -> bool:
        """Is any request planned and not yet made?"""
        return any(self.planned)

    def asked(self, node: int) -> None:
        """The planned request is made, or would be if the node were up."""
        self.planned[node] = 0

    def back(self, node: int, now: int) -> None:
        """The node is back after a reset; what it had asked for is forgotten."""
        if self.planned[node] == 0:
            self.done(node, now)

    def gone(self, node: int, now: int) -> None:
        """The node crashed for good: it makes no further request."""
        self.total_left -= self.left[node]
        self.left[node] = 0

    def take(self, node: int) -> bool:
        """Count one request off; False if the node has made all of its."""
        if self.left[node] == 0:
            return False
        self.left[node] -= 1
        self.total_left -= 1
        return True

    def stay(self, node: int) -> int:
        """How long this entry lasts; -1: until the workload ends it."""
        if self.hold_random:
            return self.stream.exponential(self.hold)
        return self.hold

    def give_up_after(self) -> int:
        """How long this request is willing to wait; -1: for ever."""
        if self.give_up_share > 0.0 and self.stream.unit() < self.give_up_share:
            return self.stream.exponential(self.give_up_mean)
        return -1


class Closed(Workload):
    """FK section 4: after each exit a node thinks for exp(1/rate), then asks again."""

    def __init__(self, n: int, requests: int, hold: int, stream: Stream, rate: float) -> None:
        Workload.__init__(self, n, requests, hold, stream)
        self.think = SECOND / rate

    def begin(self, now: int) -> None:
        for node in range(self.n):
            self.done(node, now)

    def done(self, node: int, now: int) -> None:
        if self.left[node] > 0:
            self.left[node] -= 1
            self.total_left -= 1
            self.ask_at(node, now + self.stream.exponential(self.think))


class Open(Workload):
    """Poisson arrivals at each node, whatever became of the earlier ones; while one is under way the
    others stand in line at their node, and their wait counts from their arrival."""

    def __init__(self, n: int, requests: int, hold: int, stream: Stream, rate: float) -> None:
        Workload.__init__(self, n, requests, hold, stream)
        self.gap = SECOND / rate
        self.next_arrival = numbers(n)

    def begin(self, now: int) -> None:
        for node in range(self.n):
            self.next_arrival[node] = now
            self.done(node, now)

    def done(self, node: int, now: int) -> None:
        if self.take(node):
            self.next_arrival[node] += self.stream.exponential(self.gap)
            self.arrived_at(node, self.next_arrival[node])


class Rounds(Workload):
    """In each round some nodes, drawn at random, ask at once; the next round begins when all are through.

    `requests` is the number of rounds, `askers` the requests of one round.
    """

    def __init__(self, n: int, requests: int, hold: int, stream: Stream, askers: int) -> None:
        Workload.__init__(self, n, 0, hold, stream)
        self.rounds_left = requests
        self.total_left = requests * askers
        self.askers = askers
        self.busy: set[int] = set()  # who has not come through this round
        self.alive = list(range(n))

    def begin(self, now: int) -> None:
        self.next_round(now)

    def done(self, node: int, now: int) -> None:
        if node in self.busy:
            self.busy.remove(node)
            if not self.busy:
                self.next_round(now)

    def gone(self, node: int, now: int) -> None:
        if node in self.alive:
            self.alive.remove(node)
            self.done(node, now)

    def next_round(self, now: int) -> None:
        if self.rounds_left == 0 or not self.alive:
            self.total_left = 0
        else:
            self.rounds_left -= 1
            self.total_left = self.rounds_left * self.askers
            chosen = sample(self.stream, self.alive, min(self.askers, len(self.alive)))
            self.busy.update(chosen)
            for node in chosen:
                self.ask_at(node, now)
