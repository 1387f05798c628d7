from fairgate.overlay.overlay cimport Overlay
from fairgate.overlay.ring cimport Ring
from fairgate.overlay.table cimport Table

cdef class Settled(Overlay):
    cdef public Table table
    cpdef Table make_table(self, long long me, setup)

cdef class LeftTable(Table):
    cdef readonly Ring ring

cdef class SettledChord(Settled):
    pass

cdef class SettledPastry(Settled):
    pass
