from fairgate.core.units cimport int128

cdef class Counts:
    cdef readonly int128 waited
    cdef readonly long long longest, views
    cdef public long long entries, sent, received, lost
    cpdef entered(self, long long waited)
