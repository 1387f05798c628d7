"""What must always hold, as one small machine that every driver feeds with entries and exits.

At most k are inside; where a protocol has slots, no slot has two holders and its fences strictly
rise. `enter` answers "" or one line that says what broke. Where there are several gates each has one of these; who
goes through gate g of so many is a seat, number `node * gates + g`.
"""

from fairgate.core.ids import NIL
from fairgate.core.numbers import numbers


class Occupancy:
    __slots__ = ("gate", "gates", "holder", "inside", "k", "last_fence", "max_inside", "slots")

    def __init__(self, k: int, slots: bool, gate: int = 0, gates: int = 1) -> None:
        self.k = k
        self.slots = slots
        self.gate = gate
        self.gates = gates
        self.inside = 0
        self.max_inside = 0
        self.holder = numbers(k, NIL)  # slot -> who is in it
        self.last_fence = numbers(k, NIL)

    def enter(self, who: int, slot: int, fence: int) -> str:
        inside = self.inside + 1
        self.inside = inside
        if inside > self.max_inside:
            self.max_inside = inside
        if inside > self.k:
            return f"k: {inside} inside, k is {self.k} ({self.named(who)} came last)"
        if not self.slots:
            if slot == NIL and fence == NIL:
                return ""
            return f"slot: {self.named(who)} was given slot {slot}, there are none"
        if not 0 <= slot < self.k:
            return f"slot: {self.named(who)} was given slot {slot}, there are 0..{self.k - 1}"
        other = self.holder[slot]
        before = self.last_fence[slot]
        self.holder[slot] = who
        self.last_fence[slot] = fence
        if other != NIL:
            return f"slot: {self.named(who)} was given slot {slot}, {self.named(other)} is in it"
        if fence <= before:
            return f"fence: slot {slot} gave fence {fence} after {before}"
        return ""

    def leave(self, who: int, slot: int) -> None:
        self.inside -= 1
        if self.slots and 0 <= slot < self.k and self.holder[slot] == who:
            self.holder[slot] = NIL

    def named(self, who: int) -> str:
        return f"node {who}" if self.gates == 1 else f"node {who // self.gates} of gate {self.gate}"
