cimport cython
from fairgate.core.keyspace cimport clockwise, is_between, past, place_of, top_bit
from fairgate.overlay.ring cimport Ring
from fairgate.overlay.table cimport Table

cdef long long NIL

cdef class ChordTable(Table):
    cdef readonly long long most
    cdef readonly long long lowest
    cpdef long long count(self) except -2
    cpdef long long successor(self, long long i) except -2
    cpdef unsigned long long start(self) noexcept
    cpdef long long finger(self, long long i) except -2
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
    cpdef long long successor_at(self, unsigned long long away) except -2

cdef class SettledChordTable(ChordTable):
    cdef readonly Ring ring
    @cython.locals(others=cython.longlong)
    cpdef long long count(self) except -2
    @cython.locals(finger=cython.longlong)
    cpdef long long finger(self, long long i) except -2

cdef class KeptChordTable(ChordTable):
    cdef public long long predecessor
    cdef public long long behind
    cdef public unsigned long long owned_from
    cdef public list successors
    cdef public list fingers
    cpdef long long lowest_needed(self) except -2
    cpdef bint begin(self, Ring ring) except -1
    cpdef bint set_predecessor(self, long long peer, long long behind) except -1
    cpdef bint stand_alone(self) except -1
    @cython.locals(reached=cython.ulonglong, away=cython.ulonglong, peer=cython.longlong)
    cpdef bint take_list(self, long long first, list rest) except -1
    cpdef bint set_finger(self, long long i, long long peer) except -1
    @cython.locals(i=cython.longlong)
    cpdef bint drop_finger(self, long long peer) except -1
    cpdef tuple key(self)
    cpdef load(self, tuple key)
