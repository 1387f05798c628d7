cimport cython
from fairgate.check.expand cimport Batch
from fairgate.check.liveness cimport Graph
from fairgate.check.seen cimport Seen

cdef long long BREAKS, MUST_HAPPEN

cdef class Covered:
    cdef public Seen seen
    cdef public Graph graph
    cdef public long long looked, transitions, fresh_states, finder
    cdef public object fresh
    cdef public list batches
    @cython.locals(
        seen=Seen, graph=Graph, counts='int[::1]', waiting='long long[::1]', fingerprints='long long[::1]',
        flags='signed char[::1]', lengths='int[::1]', step=cython.longlong, place=cython.longlong, state=cython.longlong,
        at=cython.longlong, found=cython.longlong,
    )
    cpdef bint add(self, Batch batch, long long finder, long long most_states) except -1
    cpdef void keep(self, state) except *
    cpdef void close_batch(self) except *
