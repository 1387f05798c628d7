"""What a run measures at every entry, counted in arrays: the twin of metrics.py."""

cimport cython
from fairgate.core.numbers import numbers


@cython.final
cdef class Metrics:
    def __init__(self, n, warmup):
        self.warmup = warmup  # requests of each node left out of the waits
        self.entries = 0  # including those of the warm-up
        self.cancelled = 0
        self.lost = 0
        self.counted = 0  # waits after the warm-up
        self.wait_total = 0
        self.wait_max = 0
        self.waits = numbers(1024)
        self.node_entries = numbers(n)
        self.node_max = numbers(n, -1)  # longest wait of each node; -1: none since the warm-up

    cpdef bint entered(self, long long node, long long wait) except -1:
        self.entries += 1
        self.node_entries[node] += 1
        if self.node_entries[node] > self.warmup:
            if self.counted == len(self.waits):
                self.grow()
            self.waits[self.counted] = wait
            self.counted += 1
            self.wait_total += wait
            if wait > self.wait_max:
                self.wait_max = wait
            if wait > self.node_max[node]:
                self.node_max[node] = wait

    def restart(self):
        """Leave out all waits until now: the warm-up is over."""
        self.counted = 0
        self.wait_total = 0
        self.wait_max = 0
        for node in range(len(self.node_max)):
            self.node_max[node] = -1

    cpdef bint grow(self) except -1:
        cdef long long[::1] more = numbers(2 * self.counted)
        more[: self.counted] = self.waits
        self.waits = more

    def kept_waits(self):
        """A view of the waits, not a copy."""
        return self.waits[: self.counted]

    def node_maxima(self):
        cdef long long node
        return [self.node_max[node] for node in range(self.node_max.shape[0]) if self.node_max[node] >= 0]

    def node_totals(self):
        return list(self.node_entries)
