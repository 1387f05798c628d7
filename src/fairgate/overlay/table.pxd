from fairgate.core.keyspace cimport place_of

cdef class Table:
    cdef readonly long long me
    cdef readonly unsigned long long place
    cpdef long long next_hop(self, unsigned long long key) except -2
    cpdef tuple neighbours(self, long long count)
    cpdef tuple owned(self)
