"""The workload of SG section V: requests arrive at a total rate, and each goes to an idle client."""

from fairgate.core.units import SECOND
from fairgate.sim.stream import Stream
from fairgate.sim.workload import Workload


class ClientPool(Workload):
    """Lasts until the run is cut. A request that finds no idle client waits for one; that is part of its wait."""

    def __init__(self, seats: int, hold: int, stream: Stream, rate: float) -> None:
        Workload.__init__(self, seats, 0, hold, stream)
        self.total_left = 1  # never 0: there is always another request
        self.gap = SECOND / rate
        self.arrival = 0  # when the next request arrives
        self.idle = list(range(seats))
        self.place = list(range(seats))  # seat -> its index in `idle`, or -1
        self.dry = False  # is the next request waiting for an idle client?

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
        """Remove a seat from `idle`; the last one takes its place."""
        last = self.idle.pop()
        if last != seat:
            self.idle[self.place[seat]] = last
            self.place[last] = self.place[seat]
        self.place[seat] = -1
