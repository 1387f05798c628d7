"""A seat: one node at one gate, with all that the simulator knows of its present request.

One object and not a row of numbers for each field: a step at a seat then reads one piece of memory. Of 100,000
seats the next one is in no cache, and the interpreter finds a field of an object sooner than a place in a row.
"""

from fairgate.core.ids import NIL
from fairgate.core.properties import Occupancy
from fairgate.sim.line import Line, Place

IDLE, WAITING, INSIDE, DOWN = 0, 1, 2, 3


class Seat(Place):
    __slots__ = ("asked", "line", "me", "number", "occupancy", "request", "slot", "state")

    def __init__(self, number: int, me: int, state: int, line: Line, occupancy: Occupancy) -> None:
        Place.__init__(self)
        self.number = number
        self.me = me  # its node
        self.state = state
        self.line = line  # of its gate
        self.occupancy = occupancy  # of its gate
        self.request = NIL
        self.asked = 0  # when the present request was made
        self.slot = NIL
