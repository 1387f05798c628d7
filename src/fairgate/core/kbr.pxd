from fairgate.core.layers cimport Through
from fairgate.core.message cimport Message
from fairgate.core.mutex cimport Mutex
from fairgate.core.node cimport Node
from fairgate.core.setup cimport Setup

cdef class Gated(Message):
    cdef readonly long long gate

cdef class Keyed(Gated):
    cdef readonly unsigned long long target

cdef class Door(Through):
    cpdef void route(self, Keyed msg) except *
    cpdef void lookup(self, unsigned long long key) except *
    cpdef long long next_hop(self, unsigned long long key) except -2
    cpdef tuple neighbours(self, long long count)

cdef class Rider(Node):
    cpdef Keyed forward(self, long long src, Keyed msg, long long next_hop)
    cpdef void deliver(self, long long src, Keyed msg) except *
    cpdef void on_found(self, unsigned long long key, long long owner) except *
    cpdef void on_range(self, unsigned long long start, unsigned long long end) except *

cdef class Routed(Mutex):
    cdef public Door door
    cdef readonly long long gate
    cdef readonly tuple keys
    cpdef Keyed forward(self, long long src, Keyed msg, long long next_hop)
    cpdef void deliver(self, long long src, Keyed msg) except *
    cpdef void on_found(self, unsigned long long key, long long owner) except *
    cpdef void on_range(self, unsigned long long start, unsigned long long end) except *

cpdef tuple replica_keys(Setup setup)
