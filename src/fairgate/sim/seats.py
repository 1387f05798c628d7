"""The seats of all nodes at all gates, and which nodes are down.

Node ids are 0..n-1. A node has one seat per gate, and makes its requests from there: seat `node * resources + gate`.
With one gate, a node and its seat have the same number.
"""

from fairgate.core.ids import NIL
from fairgate.core.properties import Occupancy
from fairgate.core.setup import Setup
from fairgate.sim.loop import Loop
from fairgate.sim.overtakes import Waiters
from fairgate.sim.seat import Seat
from fairgate.sim.seat_states import DOWN, IDLE, INSIDE


class Seats(Loop):
    __slots__ = ("down", "members", "occupancies", "resources", "waiters")

    def __init__(self, setup: Setup, slots: bool, spares: int) -> None:
        self.members = setup.n
        n = self.members + spares  # spares are down until they join
        Loop.__init__(self, n)
        self.resources: int = setup.options.get("resources", 1)
        gates = range(self.resources)
        self.waiters = [Waiters() for _ in gates]
        self.occupancies = [Occupancy(setup.k, slots, gate, self.resources) for gate in gates]
        self.down = bytearray(n)  # 1: this node is down
        for me in range(self.members, n):
            self.down[me] = 1
        self.make_room(n * self.resources)
        if self.resources == 1:  # with many gates, few of their seats are ever used
            for me in range(n):
                self.take_seat(me)

    def take_seat(self, number: int) -> Seat:
        """Make the seat with this number, when it is first used."""
        me, gate = divmod(number, self.resources)
        state = DOWN if self.is_down(me) else IDLE
        seat = Seat(number, me, gate, state)
        self.put_seat(number, seat)
        return seat

    def seat_numbers(self, me: int) -> range:
        """The numbers of a node's seats."""
        return range(me * self.resources, (me + 1) * self.resources)

    def used_seats(self, me: int) -> list[Seat]:
        """The seats of a node that were ever used."""
        found = []
        for number in self.seat_numbers(me):
            seat = self.seat_at(number)
            if seat is not None:
                found.append(seat)
        return found

    def is_down(self, me: int) -> bool:
        return self.down[me] == 1

    def is_idle(self, number: int) -> bool:
        """May this seat make a request?"""
        seat = self.seat_at(number)
        return seat.state == IDLE if seat is not None else not self.is_down(number // self.resources)

    def inside_at(self, number: int) -> int:
        """The seat's request if it is inside, otherwise NIL."""
        seat = self.seat_at(number)
        return seat.request if seat is not None and seat.state == INSIDE else NIL

    def inside(self) -> int:
        """How many seats are inside, over all gates."""
        return sum([occupancy.inside for occupancy in self.occupancies])
