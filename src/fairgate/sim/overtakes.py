"""Everybody who waits at one gate, in the order of asking: where overtakes are counted.

Who comes in before others that asked earlier has overtaken them. The line is a ring of linked places (a seat
has one request at a time, so one place), so a fair protocol, which takes from the front, pays next to
nothing for the count. With up to EXACT seats it is exact. With more, the count of one entry ends at MOST and
the sum is a lower bound: a burst of 100,000 requests must not cost a walk along all of them for each.
"""

EXACT, MOST = 1000, 100


class PlaceInLine:
    """In a line: what a seat of the simulator is, and the line's own end."""

    __slots__ = ("after", "before", "passed")

    def __init__(self) -> None:
        self.before = self
        self.after = self
        self.passed = 0  # how often the present request was overtaken


class Waiters:
    __slots__ = ("end", "max_displacement", "max_overtaken", "most", "overtakes")

    def __init__(self, seats: int) -> None:
        self.end = PlaceInLine()  # before it is who came last, after it who came first
        self.most = seats if seats <= EXACT else MOST
        self.overtakes = 0  # pairs (who came in, who asked earlier and still waits)
        self.max_displacement = 0  # the most that one entry overtook
        self.max_overtaken = 0  # the most often that one request was overtaken

    def join(self, place: PlaceInLine) -> None:
        end = self.end
        last = end.before
        place.before = last
        place.after = end
        place.passed = 0
        last.after = place
        end.before = place

    def enter(self, place: PlaceInLine) -> None:
        """Somebody leaves the line because it came in: it overtook all before it."""
        if place.before is not self.end:
            self.overtake(place)
        if place.passed > self.max_overtaken:
            self.max_overtaken = place.passed
        place.before.after, place.after.before = place.after, place.before

    def overtake(self, place: PlaceInLine) -> None:
        """Count those who asked before this one and still wait."""
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
        """Somebody leaves the line without coming in: it gave up, or crashed."""
        place.before.after, place.after.before = place.after, place.before
