cimport cython
from fairgate.core.keyspace cimport clockwise, is_between, past, place_of, top_bit
from fairgate.overlay.ring cimport Ring
from fairgate.overlay.table cimport Table

cdef long long NIL

cdef class ChordTable(Table):
    cdef readonly long long most
    cdef readonly long long lowest
    cpdef long long count(self) noexcept
    cpdef long long successor(self, long long i) noexcept
    cpdef unsigned long long start(self) noexcept
    cpdef long long finger(self, long long i) noexcept
    @cython.locals(
        count=cython.longlong,
        last=cython.longlong,
        away=cython.ulonglong,
        reach=cython.ulonglong,
        i=cython.longlong,
        finger=cython.longlong,
    )
    cpdef long long next_hop(self, unsigned long long key) except -2
    @cython.locals(i=cython.longlong)
    cpdef long long successor_at(self, unsigned long long away) noexcept

cdef class SettledChordTable(ChordTable):
    cdef readonly Ring ring
    @cython.locals(others=cython.longlong)
    cpdef long long count(self) noexcept
    @cython.locals(finger=cython.longlong)
    cpdef long long finger(self, long long i) noexcept
