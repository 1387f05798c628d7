"""The seats of all nodes at all gates, and which nodes are down.

Node ids are 0..n-1. Where there are several gates, a node has a seat at each: seat `node * resources + gate` is who
asks, waits and is inside. With one gate node and seat are the same number.

A seat has all that the simulator knows of its present request. It is one object and not a row of numbers for each
field: a step at a seat then reads one piece of memory. Of 100,000 seats the next one is in no cache, and the
interpreter finds a field of an object sooner than a place in a row.
"""

from fairgate.core.ids import NIL
from fairgate.core.numbers import numbers
from fairgate.core.properties import Occupancy
from fairgate.core.setup import Setup
from fairgate.sim.loop import Loop
from fairgate.sim.overtakes import PlaceInLine, Waiters
from fairgate.sim.seat_states import DOWN, IDLE, INSIDE


class Seat(PlaceInLine):
    """One node at one gate."""

    __slots__ = ("asked", "me", "number", "occupancy", "request", "slot", "state", "waiters")

    def __init__(self, number: int, me: int, state: int, waiters: Waiters, occupancy: Occupancy) -> None:
        PlaceInLine.__init__(self)
        self.number = number
        self.me = me  # its node
        self.state = state
        self.waiters = waiters  # of its gate
        self.occupancy = occupancy  # of its gate
        self.request = NIL
        self.asked = 0  # when the present request was made
        self.slot = NIL


class Seats(Loop):
    __slots__ = ("down", "members", "occupancies", "resources", "seat", "waiters")

    def __init__(self, setup: Setup, slots: bool, spares: int) -> None:
        self.members = len(setup.members)
        n = self.members + spares  # spares are down until they join
        Loop.__init__(self, n)
        self.resources: int = setup.options.get("resources", 1)
        gates = range(self.resources)
        self.waiters = [Waiters(n * self.resources) for _ in gates]
        self.occupancies = [Occupancy(setup.k, slots, gate, self.resources) for gate in gates]
        self.down = numbers(n)  # 1: this node is down
        for me in range(self.members, n):
            self.down[me] = 1
        self.seat: list[Seat | None] = [None] * (n * self.resources)
        if self.resources == 1:  # of many gates' seats few are ever used
            for me in range(n):
                self.take_seat(me)

    def take_seat(self, number: int) -> Seat:
        """For who first asks."""
        me, gate = divmod(number, self.resources)
        state = DOWN if self.is_down(me) else IDLE
        seat = Seat(number, me, state, self.waiters[gate], self.occupancies[gate])
        self.seat[number] = seat
        return seat

    def seat_numbers(self, me: int) -> range:
        """The numbers of a node's seats."""
        return range(me * self.resources, (me + 1) * self.resources)

    def used_seats(self, me: int) -> list[Seat]:
        """Those of a node that were ever used."""
        found = []
        for number in self.seat_numbers(me):
            seat = self.seat[number]
            if seat is not None:
                found.append(seat)
        return found

    def is_down(self, me: int) -> bool:
        return self.down[me] == 1

    def is_idle(self, number: int) -> bool:
        """May it ask?"""
        seat = self.seat[number]
        return seat.state == IDLE if seat is not None else not self.is_down(number // self.resources)

    def inside_at(self, number: int) -> int:
        """The request that is inside there; NIL: none is."""
        seat = self.seat[number]
        return seat.request if seat is not None and seat.state == INSIDE else NIL

    def inside(self) -> int:
        """How many are inside, of all gates."""
        return sum([occupancy.inside for occupancy in self.occupancies])
