"""Workloads: when nodes make requests, how long they stay inside, and when they give up."""

from typing import final

from fairgate.core.numbers import numbers
from fairgate.core.units import SECOND
from fairgate.sim.events import ACQUIRE
from fairgate.sim.loop import Loop
from fairgate.sim.sampling import sample
from fairgate.sim.stream import Stream


class Workload:
    """Plans the requests of all nodes (with several gates: of all seats), one at a time for each."""

    def __init__(self, n: int, requests: int, hold: int, stream: Stream) -> None:
        self.n = n
        self.loop = Loop(0)  # the engine, once it has begun
        self.left = numbers(n, requests)  # by node: requests that are not planned yet
        self.total_left = n * requests
        self.planned = bytearray(n)  # by node: 1 if a request is planned and not made yet
        self.hold = hold  # ns that an entry lasts, or their mean
        self.stream = stream
        self.give_up_share = 0.0
        self.give_up_mean = 0.0
        self.hold_random = False

    def begin(self, now: int) -> None:
        """Plan the first requests."""
        raise NotImplementedError

    def done(self, node: int, now: int) -> None:
        """Plan the node's next request, if there is one, now that the current one has ended."""
        raise NotImplementedError

    @final
    def ask_at(self, node: int, time: int) -> None:
        """Plan the node's next request."""
        self.planned[node] = 1
        self.loop.push(time, ACQUIRE, node, time, None)

    def arrived_at(self, node: int, time: int) -> None:
        """Plan a request that may have arrived in the past and queued at its node: its wait counts from then."""
        self.planned[node] = 1
        self.loop.push(max(time, self.loop.now), ACQUIRE, node, time, None)

    def asking(self) -> bool:
        """Is any request planned and not made yet?"""
        return any(self.planned)

    def asked(self, node: int) -> None:
        """Record that the node's planned request is due. It is made if the node is up."""
        self.planned[node] = 0

    def back(self, node: int, now: int) -> None:
        """Plan the next request of a node that is back after a reset; its earlier request is lost."""
        if self.planned[node] == 0:
            self.done(node, now)

    def gone(self, node: int, now: int) -> None:
        """Record that the node crashed permanently and will make no more requests."""
        self.total_left -= self.left[node]
        self.left[node] = 0

    def take(self, node: int) -> bool:
        """Take one request off the node's count; return False if none was left."""
        if self.left[node] == 0:
            return False
        self.left[node] -= 1
        self.total_left -= 1
        return True

    def stay(self, node: int) -> int:
        """How long this entry lasts, in ns; -1: until the workload ends it."""
        if self.hold_random:
            return self.stream.exponential(self.hold)
        return self.hold

    def give_up_after(self) -> int:
        """How long this request waits before it gives up, in ns; -1: forever."""
        if self.give_up_share > 0.0 and self.stream.unit() < self.give_up_share:
            return self.stream.exponential(self.give_up_mean)
        return -1


class Closed(Workload):
    """The workload of FK section 4: after each exit a node thinks for exp(1/rate), then makes its next request."""

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
    """Poisson arrivals at each node, independent of earlier requests.

    A request that arrives while another is in progress queues at its node; its wait counts from its arrival.
    """

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
    """In each round, random nodes make a request at the same time; the next round begins when all of these have ended.

    `requests` is the number of rounds, `askers` the number of requests per round.
    """

    def __init__(self, n: int, requests: int, hold: int, stream: Stream, askers: int) -> None:
        Workload.__init__(self, n, 0, hold, stream)
        self.rounds_left = requests
        self.total_left = requests * askers
        self.askers = askers
        self.busy: set[int] = set()  # nodes whose request of this round has not ended yet
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
