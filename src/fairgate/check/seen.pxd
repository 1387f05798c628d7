cdef class Seen:
    cdef int* table
    cdef long long mask, used, capacity
    cdef long long* fingerprints
    cdef int* parents
    cpdef long long add(self, long long fingerprint, long long parent) except? -1
    cpdef long long find(self, long long fingerprint) except? -2
    cpdef bint rest(self) except -1
    cdef long long place(self, long long fingerprint) noexcept
    cdef bint grow(self) except -1
    cdef int lay_out(self, long long slots) except -1
