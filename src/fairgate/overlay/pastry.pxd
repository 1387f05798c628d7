cimport cython
from fairgate.core.keyspace cimport digit, place_of, shared_digits
from fairgate.overlay.living cimport Living
from fairgate.overlay.overlay cimport Overlay
from fairgate.overlay.pastry_table cimport KeptPastryTable
from fairgate.overlay.messages cimport Ask, Found, Lookup, Names, Ping, Upkeep

cdef long long NIL

cdef class Pastry(Living):
    cdef public KeptPastryTable table
    cdef readonly long long cells_a_period
    cdef public long long next_cell
    cdef public bint welcomed
    @cython.locals(row=cython.longlong, column=cython.longlong)
    cpdef tuple row_for(self, unsigned long long place)
    cpdef bint enter_if_ready(self) except -1
    @cython.locals(peer=cython.longlong)
    cpdef bint consider(self, tuple names) except -1
    cpdef bint is_neighbour(self, long long peer) except -1
    @cython.locals(row=cython.longlong, column=cython.longlong, present=cython.longlong)
    cpdef bint fix_next_cell(self) except -1
    cpdef bint look_up_cell(self, long long row, long long column) except -1
