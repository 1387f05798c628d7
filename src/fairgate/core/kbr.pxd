from fairgate.core.layers cimport Through
from fairgate.core.keyed cimport Keyed
from fairgate.core.mutex cimport Mutex
from fairgate.core.node cimport Node
from fairgate.core.setup cimport Setup

cdef class Door(Through):
    cpdef bint route(self, Keyed msg) except -1
    cpdef bint lookup(self, unsigned long long key) except -1
    cpdef long long next_hop(self, unsigned long long key) except -2
    cpdef tuple neighbours(self, long long count)
    cpdef bint serves(self, unsigned long long key) except -1

cdef class Rider(Node):
    cpdef bint on_tables(self) except -1
    cpdef Keyed forward(self, long long src, Keyed msg, long long next_hop)
    cpdef bint deliver(self, long long src, Keyed msg) except -1
    cpdef bint on_found(self, unsigned long long key, long long owner) except -1
    cpdef bint on_range(self, unsigned long long start, unsigned long long end) except -1

cdef class Routed(Mutex):
    cdef public Door door
    cdef readonly long long gate
    cdef readonly tuple keys
    cpdef Keyed forward(self, long long src, Keyed msg, long long next_hop)
    cpdef bint deliver(self, long long src, Keyed msg) except -1
    cpdef bint on_found(self, unsigned long long key, long long owner) except -1
    cpdef bint on_range(self, unsigned long long start, unsigned long long end) except -1

cpdef tuple replica_keys(Setup setup)
