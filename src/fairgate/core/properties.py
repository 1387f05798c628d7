"""The safety invariants of a gate, checked at every entry and exit under every driver.

At most k are inside. If the protocol has slots, no slot has two holders, and the fences of each slot strictly rise.
`enter` returns "" or one line that says which invariant broke. With several gates, each has its own `Occupancy`, and a
user is identified by the seat number `node * gates + gate`.
"""

from fairgate.core.ids import NIL
from fairgate.core.numbers import numbers


def no_slots(who: str, slot: int, fence: int) -> str:
    return (
        f"slot: {who} was given slot {slot} and fence {fence}, but its protocol has none: pass NIL, NIL to enter_cs, or"
        " say slots=True in its About"
    )


class Occupancy:
    __slots__ = ("gate", "gates", "holder", "inside", "k", "last_fence", "max_inside", "slots")

    def __init__(self, k: int, slots: bool, gate: int = 0, gates: int = 1) -> None:
        self.k = k
        self.slots = slots
        self.gate = gate
        self.gates = gates
        self.inside = 0
        self.max_inside = 0
        self.holder = numbers(k, NIL)  # by slot
        self.last_fence = numbers(k, NIL)

    def enter(self, who: int, slot: int, fence: int) -> str:
        """Record an entry. Returns "", or one line that names the broken invariant and says how it broke."""
        inside = self.inside + 1
        self.inside = inside
        if inside > self.max_inside:
            self.max_inside = inside
        if inside > self.k:
            return f"k: {inside} inside, k is {self.k} ({self.named(who)} came last)"
        if not self.slots:
            if slot == NIL and fence == NIL:
                return ""
            return no_slots(self.named(who), slot, fence)
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
