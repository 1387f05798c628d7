cdef class Seen:
    cdef long long* table
    cdef long long mask, used, capacity
    cdef long long* fingerprints
    cdef int* parents
    cpdef long long add(self, long long fingerprint, long long parent) except? -1
    cdef int grow(self) except -1
