"""The waiters of one gate in the order of their requests, and a count of overtakes.

A request that enters before earlier ones has overtaken them. The line of waiters is a doubly linked ring. Each seat is
one place in it, since a seat has one request at a time. A fair protocol serves the front of the line, so counting costs
it next to nothing.

With up to EXACT seats the count is exact. With more seats, the count for one entry stops at MOST, and the total is a
lower bound: in a burst of 100,000 requests, an entry must not walk along all of them.
"""

EXACT, MOST = 1000, 100


class PlaceInLine:
    """A place in a line of waiters: a seat (seats.py), or the end that closes the ring."""

    __slots__ = ("after", "before", "passed")

    def __init__(self) -> None:
        self.before = self
        self.after = self
        self.passed = 0  # how often the present request was overtaken


class Waiters:
    __slots__ = ("end", "max_displacement", "max_overtaken", "most", "overtakes")

    def __init__(self, seats: int) -> None:
        self.end = PlaceInLine()  # `end.before` is the latest request, `end.after` the earliest
        self.most = seats if seats <= EXACT else MOST
        self.overtakes = 0  # pairs (request that entered, earlier request that still waited)
        self.max_displacement = 0  # the most requests that one entry overtook
        self.max_overtaken = 0  # the most times that one request was overtaken

    def join(self, place: PlaceInLine) -> None:
        end = self.end
        last = end.before
        place.before = last
        place.after = end
        place.passed = 0
        last.after = place
        end.before = place

    def enter(self, place: PlaceInLine) -> None:
        """Remove a place that entered; it overtook all places before it."""
        if place.before is not self.end:
            self.overtake(place)
        if place.passed > self.max_overtaken:
            self.max_overtaken = place.passed
        place.before.after, place.after.before = place.after, place.before

    def overtake(self, place: PlaceInLine) -> None:
        """Count the earlier requests that still wait."""
        displacement = 0
        other = place.before
        while other is not self.end and displacement < self.most:
            displacement += 1
            other.passed += 1
            other = other.before
        self.overtakes += displacement
        if displacement > self.max_displacement:
            self.max_displacement = displacement

    def drop(self, place: PlaceInLine) -> None:
        """Remove a place without an entry: it gave up or crashed."""
        place.before.after, place.after.before = place.after, place.before
