"""Expands states a batch at a time: finds all their successors, without knowing which states were seen before.

Worker processes do this part of the search, so input and output are flat arrays. A state is packed as its length
followed by its numbers, one state after the other.
"""

from array import array

from fairgate.check.model import Model, Successor

# Actions that must happen eventually. All others may happen or not.
MUST = frozenset(["message", "release", "suspect", "dead", "timer", "tick", "view", "join", "expire"])
MUST_HAPPEN, BREAKS = 1, 2  # flags of a step
REMEMBERED = 1 << 16  # fingerprints in the cache of states that were packed already


class Batch:
    """The steps from some states, in order."""

    def __init__(self, arrays: list["array[int]"]) -> None:
        self.arrays = arrays
        self.counts, self.waiting, self.fingerprints, self.steps, self.packed = arrays
        # counts: per state, the number of its steps
        # waiting: per state, a bit mask of the waiting nodes; inverted (~mask) if the state is a dead end
        # fingerprints: per step, the fingerprint of the state that it leads to
        # steps: per step, four times the length of that state in `packed`, plus a flag
        #        (length 0: the state was packed before, in this batch or an earlier one)


class Expander:
    def __init__(self, model: Model) -> None:
        self.model = model
        self.sent = array("q", [-1]) * REMEMBERED  # fingerprints of states packed already; newer ones replace older

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
        """Append the steps to the three lists; False if none of them must happen."""
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


# These loops build arrays from lists. Compiled, they take a tenth of the instructions of array("i", numbers).


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
    """Packed states, with each number replaced by its entry in `numbers`."""
    found = list(packed)
    at = 0
    while at < len(found):
        end = at + 1 + found[at]
        at += 1
        while at < end:
            found[at] = numbers[found[at]]
            at += 1
    return ints(found)
