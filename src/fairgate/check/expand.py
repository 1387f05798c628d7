"""Looking at states, a batch at a time: what can happen next, without knowing what was seen before.

This is the work that can be shared out, so it goes in and out as flat arrays. A state is packed as its length and
its numbers, one state after the other.
"""

from array import array

from fairgate.check.model import Model, Successor

# What must happen some time; the rest may, and need not.
MUST = frozenset(["message", "release", "suspect", "timer", "tick", "view", "join"])
MUST_HAPPEN, BREAKS = 1, 2  # flags of a step
REMEMBERED = 1 << 16  # fingerprints


class Batch:
    """The steps from some states, in order."""

    def __init__(self, arrays: list["array[int]"]) -> None:
        self.arrays = arrays
        self.counts, self.waiting, self.fingerprints, self.steps, self.packed = arrays
        # counts: of each state, its steps
        # waiting: of each state, a bit for each node that waits; ~bits if nothing will ever move again
        # fingerprints: of each step, where it leads to
        # steps: of each step, the length of that state in `packed`, times four, and a flag
        #        (length 0: the state was in `packed` before, here or in an earlier batch)


class Expander:
    def __init__(self, model: Model) -> None:
        self.model = model
        self.sent = array("q", [-1]) * REMEMBERED  # some of the states that were packed already

    def expand(self, packed: "array[int]") -> Batch:
        model = self.model
        counts: list[int] = []
        waiting: list[int] = []
        fingerprints: list[int] = []
        steps: list[int] = []
        states: list[int] = []
        at = 0
        while at < len(packed):
            end = at + 1 + packed[at]
            state = tuple(packed[at + 1 : end])
            successors = model.successors(state)
            moves = self.add_steps(successors, fingerprints, steps, states)
            mask = model.waiting(state)
            dead_end = mask != 0 and not moves and not model.cut_off(state)
            waiting.append(~mask if dead_end else mask)
            counts.append(len(successors))
            at = end
        return Batch([ints(counts), ints(waiting), longs(fingerprints), ints(steps), ints(states)])

    def add_steps(
        self, successors: list[Successor], fingerprints: list[int], steps: list[int], states: list[int]
    ) -> bool:
        """False if none of them must happen."""
        sent = self.sent
        moves = False
        for action, state, broken in successors:
            must = action[0] in MUST
            moves = moves or must
            flag = BREAKS if broken else MUST_HAPPEN if must else 0
            fingerprint = self.model.fingerprint(state)
            fingerprints.append(fingerprint)
            place = fingerprint % REMEMBERED
            length = 0
            if sent[place] != fingerprint:
                sent[place] = fingerprint
                length = len(state) + 1
                states.append(len(state))
                states.extend(state)
            steps.append(4 * length + flag)
        return moves


# Arrays from lists, by hand: compiled, a tenth of the instructions of array("i", numbers).


def ints(numbers: list[int]) -> "array[int]":
    made = array("i", bytes(4 * len(numbers)))
    view = made
    for at in range(len(numbers)):
        view[at] = numbers[at]
    return made


def longs(numbers: list[int]) -> "array[int]":
    made = array("q", bytes(8 * len(numbers)))
    view = made
    for at in range(len(numbers)):
        view[at] = numbers[at]
    return made


def translated(packed: "array[int]", numbers: list[int]) -> "array[int]":
    """Packed states with each number replaced by another one."""
    found = list(packed)
    at = 0
    while at < len(found):
        end = at + 1 + found[at]
        at += 1
        while at < end:
            found[at] = numbers[found[at]]
            at += 1
    return ints(found)
