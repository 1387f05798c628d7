"""What must always hold, as one small machine that every driver feeds with entries and exits.

At most k are inside; where a protocol has slots, no slot has two holders and its fences strictly
rise. `enter` answers "" or one line that says what broke.
"""

from array import array

from fairgate.core.ids import NIL


class Occupancy:
    def __init__(self, k: int, slots: bool) -> None:
        self.k = k
        self.slots = slots
        self.inside = 0
        self.max_inside = 0
        self.holder = array("q", [NIL]) * k  # slot -> who is in it
        self.last_fence = array("q", [NIL]) * k

    def enter(self, who: int, slot: int, fence: int) -> str:
        self.inside += 1
        if self.inside > self.max_inside:
            self.max_inside = self.inside
        if self.inside > self.k:
            return f"k: {self.inside} inside, k is {self.k} (node {who} came last)"
        if self.slots:
            return self.occupy(who, slot, fence)
        if slot != NIL or fence != NIL:
            return f"slot: node {who} was given slot {slot}, fence {fence} by a protocol that has none"
        return ""

    def occupy(self, who: int, slot: int, fence: int) -> str:
        if not 0 <= slot < self.k:
            return f"slot: node {who} was given slot {slot}, there are 0..{self.k - 1}"
        if self.holder[slot] != NIL:
            return f"slot: node {who} was given slot {slot}, node {self.holder[slot]} is in it"
        self.holder[slot] = who
        if fence <= self.last_fence[slot]:
            return f"fence: slot {slot} gave fence {fence} after {self.last_fence[slot]}"
        self.last_fence[slot] = fence
        return ""

    def leave(self, who: int, slot: int) -> None:
        self.inside -= 1
        if self.slots and 0 <= slot < self.k and self.holder[slot] == who:
            self.holder[slot] = NIL
