"""What has been covered of a case: the states seen, in order, and the graph of the steps between them."""

from array import array

from fairgate.check.expand import BREAKS, MUST_HAPPEN, Batch
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
        self.batches: list[tuple[array[int], int]] = []  # those before them

    def add(self, batch: Batch, finder: int, most_states: int) -> bool:
        """The steps of the states that come next; False at the first that breaks something, or at `most_states`."""
        seen, graph, packed = self.seen, self.graph, batch.packed
        counts, waiting, fingerprints = batch.counts, batch.waiting, batch.fingerprints
        flags, lengths = batch.flags, batch.lengths
        if finder != self.finder:
            self.close_batch()
            self.finder = finder
        step = 0
        place = 0
        for state in range(len(counts)):
            for at in range(step, step + counts[state]):
                self.transitions += 1
                if flags[at] == BREAKS:
                    return False
                found = seen.add(fingerprints[at], self.looked)
                if found >= 0:
                    self.keep(packed[place : place + lengths[at]])
                if flags[at] == MUST_HAPPEN:
                    graph.edge(found if found >= 0 else -1 - found)
                place += lengths[at]
            step += counts[state]
            if waiting[state] < 0:
                return False
            graph.close(waiting[state])
            self.looked += 1
            if self.looked >= most_states:
                return False
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

    def taken(self) -> list[tuple["array[int]", int]]:
        """All batches that wait."""
        self.close_batch()
        batches, self.batches = self.batches, []
        return batches
