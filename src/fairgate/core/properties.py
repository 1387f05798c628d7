"""What must always hold, as one small machine that every driver feeds with entries and exits.

At most k are inside; where a protocol has slots, no slot has two holders and its fences strictly
rise. `enter` answers "" or one line that says what broke.
"""

from fairgate.core.ids import NIL
from fairgate.core.numbers import numbers


class Occupancy:
    def __init__(self, k: int, slots: bool) -> None:
        self.k = k
        self.slots = slots
        self.inside = 0
        self.max_inside = 0
        self.holder = numbers(k, NIL)  # slot -> who is in it
        self.last_fence = numbers(k, NIL)

    def enter(self, who: int, slot: int, fence: int) -> str:
        self.inside += 1
        if self.inside > self.max_inside:
            self.max_inside = self.inside
        if self.inside > self.k:
            return f"k: {self.inside} inside, k is {self.k} (node {who} came last)"
        if not self.slots:
            return "" if slot == NIL and fence == NIL else f"slot: node {who} was given slot {slot}, there are none"
        if not 0 <= slot < self.k:
            return f"slot: node {who} was given slot {slot}, there are 0..{self.k - 1}"
        other = self.holder[slot]
        before = self.last_fence[slot]
        self.holder[slot] = who
        self.last_fence[slot] = fence
        if other != NIL:
            return f"slot: node {who} was given slot {slot}, node {other} is in it"
        if fence <= before:
            return f"fence: slot {slot} gave fence {fence} after {before}"
        return ""

    def leave(self, who: int, slot: int) -> None:
        self.inside -= 1
        if self.slots and 0 <= slot < self.k and self.holder[slot] == who:
            self.holder[slot] = NIL
