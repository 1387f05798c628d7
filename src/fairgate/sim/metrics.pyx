"""What a run measures at every entry, counted as it goes: the twin of metrics.py."""

cimport cython
from cpython cimport array
from libc.stdlib cimport calloc, free

from fairgate.core.numbers import numbers


@cython.final
cdef class Metrics:
    def __init__(self, n, warmup):
        self.warmup = warmup  # requests of each node left out of the waits
        self.entries = 0  # including those of the warm-up
        self.cancelled = 0
        self.lost = 0
        self.waits = numbers(1024)  # of which `counted` are used, those after the warm-up
        self.nodes = n
        self.kept = <Kept*>calloc(n, sizeof(Kept))
        if self.kept == NULL:
            raise MemoryError
        self.restart()

    def __dealloc__(self):
        free(self.kept)

    def restart(self):
        """Leave out all waits until now: the warm-up is over."""
        cdef long long node
        self.counted = 0
        self.wait_total = 0
        self.wait_max = 0
        for node in range(self.nodes):
            self.kept[node].longest = -1

    cpdef bint grow(self) except -1:
        array.resize(self.waits, 2 * self.counted)  # which leaves the new part alone: it takes no memory until it is used

    def kept_waits(self):
        """A view of the waits, not a copy."""
        return memoryview(self.waits)[: self.counted]

    def node_maxima(self):
        cdef array.array found = array.clone(self.waits, self.nodes, zero=False)
        cdef long long node, used = 0
        for node in range(self.nodes):
            if self.kept[node].longest >= 0:
                found.data.as_longlongs[used] = self.kept[node].longest
                used += 1
        array.resize(found, used)
        return found

    def node_totals(self):
        cdef long long node
        return [self.kept[node].entries for node in range(self.nodes)]
