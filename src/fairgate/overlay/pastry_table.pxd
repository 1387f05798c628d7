cimport cython
from fairgate.core.keyspace cimport clockwise, digit, is_closer, middle, place_of, shared_digits, with_digit
from fairgate.overlay.ring cimport Ring
from fairgate.overlay.table cimport Table

cdef long long NIL

cdef class PastryTable(Table):
    cdef readonly long long bits
    cdef readonly long long columns
    cdef readonly long long half
    cpdef long long count(self, long long side) noexcept
    cpdef long long leaf(self, long long at) noexcept
    cpdef long long cell(self, long long row, long long column) noexcept
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
    cpdef long long nearest_leaf(self, unsigned long long key) noexcept
    @cython.locals(best=cython.longlong, at=cython.longlong, other=cython.longlong, column=cython.longlong)
    cpdef long long rare_case(self, unsigned long long key, long long row) noexcept
    @cython.locals(place=cython.ulonglong)
    cpdef long long better(self, unsigned long long key, long long row, long long best, long long peer) noexcept
    @cython.locals(depth=cython.longlong, side=cython.longlong)
    cpdef long long depth(self) noexcept
    cpdef unsigned long long goal(self, long long row, long long column) noexcept

cdef class SettledPastryTable(PastryTable):
    cdef readonly Ring ring
    @cython.locals(others=cython.longlong)
    cpdef long long count(self, long long side) noexcept
    @cython.locals(
        goal=cython.ulonglong,
        after=cython.longlong,
        best=cython.longlong,
        rank=cython.longlong,
        peer=cython.longlong,
        place=cython.ulonglong,
        fits=cython.bint,
    )
    cpdef long long cell(self, long long row, long long column) noexcept
