cimport cython
from fairgate.core.keyed cimport Keyed
from fairgate.overlay.overlay cimport Overlay
from fairgate.overlay.messages cimport Estate, Upkeep

cdef long long NIL

cdef class Titled(Overlay):
    cdef readonly long long wait, period
    cdef public long long given
    cdef public list titles, missing, held, taken
    cpdef bint is_there(self) except -1
    cpdef long long heir(self, unsigned long long key) except -2
    cpdef bint update_titles(self) except -1
    cpdef bint on_estate(self, long long src, Estate m) except -1
    cpdef bint title_due(self) except -1
