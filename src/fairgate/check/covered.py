"""The part of a case explored so far: the states seen, in order, and the graph of the steps between them."""

from array import array
from collections import deque

from fairgate.check.expand import BREAKS, MUST_HAPPEN, Batch, ints
from fairgate.check.liveness import Graph
from fairgate.check.seen import Seen

BATCH = 250  # states that are expanded together


class Covered:
    def __init__(self) -> None:
        self.seen = Seen()
        self.graph = Graph()
        self.looked = 0  # expanded states: all their steps are known, and their numbers are below this one
        self.transitions = 0
        self.fresh = array("i")  # the batch being filled with states to expand, packed
        self.fresh_states = 0
        self.finder = -1  # the worker that found them, whose numbers they use
        self.batches: deque[tuple[array[int], int]] = deque()  # full batches before it, each with its finder

    def add(self, batch: Batch, finder: int, most_states: int) -> bool:
        """Add the steps of the next states in order; False at the first violation or dead end, or at `most_states`."""
        seen, packed = self.seen, batch.packed
        counts, waiting, fingerprints, steps = batch.counts, batch.waiting, batch.fingerprints, batch.steps
        if finder != self.finder:
            self.close_batch()
            self.finder = finder
        step = 0
        place = 0
        targets: list[int] = []  # of the steps that must happen; only these are edges of the graph
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
        assert len(state) > 0, "a new state came without its packed form"
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
        """Remove and return all batches of states to expand: the next level."""
        self.close_batch()
        batches, self.batches = self.batches, deque()
        return batches
