"""SG section V: an endless pool of clients. Requests come at a rate in all, each to a client that is idle."""

from fairgate.core.units import SECOND
from fairgate.sim.stream import Stream
from fairgate.sim.workload import Workload


class ClientPool(Workload):
    """Goes on until the run is cut. Requests that find no idle client wait for one, from their arrival on."""

    def __init__(self, seats: int, hold: int, stream: Stream, rate: float) -> None:
        Workload.__init__(self, seats, 0, hold, stream)
        self.total_left = 1  # there is always one more
        self.gap = SECOND / rate
        self.arrival = 0  # of the request that comes next
        self.idle = list(range(seats))
        self.place = list(range(seats))  # seat -> where in `idle`; -1: it is not
        self.dry = False  # does the next request wait for an idle client?

    def begin(self, now: int) -> None:
        self.arrival = now
        self.next_request()

    def next_request(self) -> None:
        self.arrival += self.stream.exponential(self.gap)
        self.find_client()

    def find_client(self) -> None:
        self.dry = not self.idle
        if self.idle:
            seat = self.idle[self.stream.below(len(self.idle))]
            self.remove(seat)
            self.arrived_at(seat, self.arrival)

    def asked(self, node: int) -> None:
        Workload.asked(self, node)
        self.next_request()

    def done(self, node: int, now: int) -> None:
        if self.place[node] < 0:
            self.place[node] = len(self.idle)
            self.idle.append(node)
            if self.dry:
                self.find_client()

    def gone(self, node: int, now: int) -> None:
        if self.place[node] >= 0:
            self.remove(node)

    def remove(self, seat: int) -> None:
        """The last of the idle takes its place."""
        last = self.idle.pop()
        if last != seat:
            self.idle[self.place[seat]] = last
            self.place[last] = self.place[seat]
        self.place[seat] = -1
