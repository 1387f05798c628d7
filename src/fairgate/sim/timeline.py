"""What happened when, for pictures: every change of the number inside, and every wait that counts."""

from array import array
from collections.abc import Sequence

from fairgate.core.numbers import numbers
from fairgate.core.units import SECOND

Columns = dict[str, Sequence[float]]  # a table, by column


class Timeline:
    """Recorded only if asked for: it grows with every entry."""

    def __init__(self, seats: int, resources: int, warmup: int) -> None:
        self.resources = resources
        self.warmup = warmup  # requests of each seat that do not count
        self.entries = numbers(seats)  # by seat
        self.usage: list[tuple[int, int]] = [(0, 0)]  # (time in ns, number inside at all gates)
        self.restart()

    def restart(self) -> None:
        """Forget all waits until now: the warm-up is over."""
        self.seat = array("q")
        self.asked = array("q")  # ns
        self.wait = array("q")  # ns

    def entered(self, now: int, seat: int, asked: int, inside: int) -> None:
        self.usage.append((now, inside))
        self.entries[seat] += 1
        if self.entries[seat] > self.warmup:
            self.seat.append(seat)
            self.asked.append(asked)
            self.wait.append(now - asked)

    def left(self, now: int, inside: int) -> None:
        self.usage.append((now, inside))

    def waits(self) -> Columns:
        """One row per entry, in the order of the entries; times are in seconds."""
        return {
            "node": array("q", [seat // self.resources for seat in self.seat]),
            "gate": array("q", [seat % self.resources for seat in self.seat]),
            "asked": array("d", [asked / SECOND for asked in self.asked]),
            "wait": array("d", [wait / SECOND for wait in self.wait]),
        }
