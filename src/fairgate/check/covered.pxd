cimport cython
from fairgate.check.expand cimport Batch, ints
from fairgate.check.liveness cimport Graph
from fairgate.check.seen cimport Seen

cdef long long BREAKS, MUST_HAPPEN

@cython.final
cdef class Covered:
    cdef public Seen seen
    cdef public Graph graph
    cdef public long long looked, transitions, fresh_states, finder
    cdef public object fresh, batches
    @cython.locals(
        seen=Seen, counts='int[::1]', waiting='int[::1]', fingerprints='long long[::1]', steps='int[::1]',
        step=cython.longlong, place=cython.longlong, state=cython.longlong, at=cython.longlong, found=cython.longlong,
        flag=cython.longlong, length=cython.longlong, targets=list, ends=list,
    )
    cpdef bint add(self, Batch batch, long long finder, long long most_states) except *
    cpdef bint keep(self, state) except -1
    cpdef bint close_batch(self) except -1
