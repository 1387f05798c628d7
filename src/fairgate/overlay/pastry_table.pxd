cimport cython
from fairgate.core.keyspace cimport clockwise, digit, is_closer, middle, place_of, shared_digits, with_digit
from fairgate.overlay.ring cimport Ring
from fairgate.overlay.table cimport Table

cdef long long NIL

cdef class PastryTable(Table):
    cdef readonly long long bits
    cdef readonly long long columns
    cdef readonly long long half
    cpdef long long count(self, long long side) except -2
    cpdef long long leaf(self, long long at) except -2
    cpdef long long cell(self, long long row, long long column) except -2
    @cython.locals(nearest=cython.longlong, row=cython.longlong, cell=cython.longlong)
    cpdef long long next_hop(self, unsigned long long key) except -2
    @cython.locals(
        away=cython.ulonglong,
        count=cython.longlong,
        side=cython.longlong,
        before=cython.longlong,
        at=cython.longlong,
        leaf=cython.longlong,
        place=cython.ulonglong,
        far=cython.ulonglong,
    )
    cpdef long long nearest_leaf(self, unsigned long long key) except -2
    @cython.locals(best=cython.longlong, at=cython.longlong, other=cython.longlong, column=cython.longlong)
    cpdef long long rare_case(self, unsigned long long key, long long row) except -2
    @cython.locals(place=cython.ulonglong)
    cpdef long long better(self, unsigned long long key, long long row, long long best, long long peer) except -2
    @cython.locals(depth=cython.longlong, side=cython.longlong)
    cpdef long long depth(self) except -2
    cpdef unsigned long long goal(self, long long row, long long column) noexcept

cdef class SettledPastryTable(PastryTable):
    cdef readonly Ring ring
    cdef long long version, here
    cdef unsigned long long after, before
    @cython.locals(ring=Ring, count=cython.longlong)
    cpdef bint look_around(self) except -1
    @cython.locals(others=cython.longlong)
    cpdef long long count(self, long long side) except -2
    @cython.locals(ring=Ring, rank=cython.longlong)
    cpdef long long nearest_leaf(self, unsigned long long key) except -2
    @cython.locals(ring=Ring, goal=cython.ulonglong, rank=cython.longlong, below=cython.longlong, before=bint, after=bint)
    cpdef long long cell(self, long long row, long long column) except -2

cdef class KeptPastryTable(PastryTable):
    cdef public list after
    cdef public list before
    cdef public dict cells
    cpdef list leaves(self)
    cpdef list known(self)
    cpdef bint begin(self, Ring ring) except -1
    @cython.locals(far=cython.ulonglong, leaves=list, at=cython.longlong)
    cpdef long long at(self, long long peer, long long side) except -2
    @cython.locals(place=cython.ulonglong)
    cpdef unsigned long long far(self, long long peer, long long side) noexcept
    cpdef bint wants(self, long long peer) except -1
    @cython.locals(place=cython.ulonglong, row=cython.longlong, column=cython.longlong, present=cython.longlong)
    cpdef bint fits_cell(self, long long peer) except -1
    @cython.locals(place=cython.ulonglong, row=cython.longlong, side=cython.longlong, leaves=list)
    cpdef bint learn(self, long long peer) except -1
    cpdef bint forget(self, long long peer) except -1
    cpdef tuple key(self)
    cpdef load(self, tuple key)
