cdef class Counts:
    cdef readonly long long waited, longest, views
    cdef public long long entries, sent, received, lost
    cpdef entered(self, long long waited)
