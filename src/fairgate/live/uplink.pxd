from fairgate.core.message cimport Message

cdef class Uplink:
    cdef public long long me, now, lease_until
    cpdef bint has_lease(self)
    cpdef send(self, long long host, str gate, long long dst, long long src, Message msg)
    cpdef tell(self, gate, ticket)
