from cpython.ref cimport PyObject
from fairgate.core.node cimport Node
from fairgate.core.prefetch cimport Prefetch
from fairgate.sim.loop cimport Lane

cdef enum:
    FAR = 12  # how many messages ahead prefetching begins

cdef enum:  # results of what_to_fetch
    NOTHING
    OF_GATES
    OF_SETTLED

cdef int what_to_fetch(Node node) noexcept
cdef Prefetch prefetch_of(Node node) except? NULL
cdef PyObject** gates_of(Node node) noexcept
cdef void fetch_ahead(int what, Prefetch of_protocol, PyObject* nodes, PyObject*** gates, Lane* lane) noexcept
