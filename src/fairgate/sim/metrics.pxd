cimport cython
from cpython cimport array
from fairgate.core.units cimport int128

cdef packed struct Kept:  # 12 bytes instead of 16: a large system has one per node
    long long longest  # wait; -1: none since the warm-up
    int entries

@cython.final
cdef class Metrics:
    cdef readonly long long warmup, counted, wait_max
    cdef readonly int128 wait_total
    cdef public long long entries, cancelled, lost
    cdef array.array waits
    cdef Kept* kept  # by node
    cdef long long nodes
    cpdef bint grow(self) except -1

    cpdef inline bint entered(self, long long node, long long wait) except -1:
        cdef Kept* kept = &self.kept[node]
        self.entries += 1
        kept.entries += 1
        if kept.entries > self.warmup:
            if self.counted == len(self.waits):
                self.grow()
            self.waits.data.as_longlongs[self.counted] = wait
            self.counted += 1
            self.wait_total += wait
            if wait > self.wait_max:
                self.wait_max = wait
            if wait > kept.longest:
                kept.longest = wait
