"""What has been covered of a case: the states seen, in order, and the graph of the steps between them."""

from array import array
from collections import deque

from fairgate.check.expand import BREAKS, MUST_HAPPEN, Batch, ints
from fairgate.check.liveness import Graph
from fairgate.check.seen import Seen

BATCH = 250  # states that are looked at together


class Covered:
    def __init__(self) -> None:
        self.seen = Seen()
        self.graph = Graph()
        self.looked = 0  # states all of whose steps are known; their numbers are below this one
        self.transitions = 0
        self.fresh = array("i")  # states that wait to be looked at, packed
        self.fresh_states = 0
        self.finder = -1  # who found them
        self.batches: deque[tuple[array[int], int]] = deque()  # those before them

    def add(self, batch: Batch, finder: int, most_states: int) -> bool:
        """The steps of the states that come next; False at the first that breaks something, or at `most_states`."""
        seen, packed = self.seen, batch.packed
        counts, waiting, fingerprints, steps = batch.counts, batch.waiting, batch.fingerprints, batch.steps
        if finder != self.finder:
            self.close_batch()
            self.finder = finder
        step = 0
        place = 0
        targets: list[int] = []  # of the steps that must happen
        ends: list[int] = []
        for state in range(len(counts)):
            for at in range(step, step + counts[state]):
                flag = steps[at] & 3
                length = steps[at] >> 2
                self.transitions += 1
                if flag == BREAKS:
                    return False
                found = seen.add(fingerprints[at], self.looked)
                if found >= 0:
                    self.keep(packed[place : place + length])
                if flag == MUST_HAPPEN:
                    targets.append(found if found >= 0 else -1 - found)
                place += length
            step += counts[state]
            if waiting[state] < 0:
                return False
            ends.append(len(targets))
            self.looked += 1
            if self.looked >= most_states:
                return False
        self.graph.extend(ends, ints(targets), batch.waiting)
        return True

    def keep(self, state: "array[int]") -> None:
        assert len(state) > 0, "a state that was never seen came without its numbers"
        self.fresh.extend(state)
        self.fresh_states += 1
        if self.fresh_states == BATCH:
            self.close_batch()

    def close_batch(self) -> None:
        if self.fresh_states:
            self.batches.append((self.fresh, self.finder))
        self.fresh = array("i")
        self.fresh_states = 0

    def taken(self) -> "deque[tuple[array[int], int]]":
        """All batches that wait."""
        self.close_batch()
        batches, self.batches = self.batches, deque()
        return batches
