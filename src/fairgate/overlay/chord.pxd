cimport cython
from fairgate.core.keyspace cimport clockwise, past, place_of, top_bit
from fairgate.overlay.chord_table cimport KeptChordTable
from fairgate.overlay.living cimport Living
from fairgate.overlay.messages cimport Ask, Changed, Found, Lookup, Notify, Ping, Tell, Upkeep

cdef long long NIL

cdef class Chord(Living):
    cdef public KeptChordTable table
    cdef public set suspected
    cdef public long long next_finger
    cpdef bint become_member(self, long long src, Tell m) except -1
    @cython.locals(away=cython.ulonglong, first=cython.longlong, between=cython.longlong, is_nearer=cython.bint)
    cpdef bint on_tell(self, long long src, Tell m) except -1
    @cython.locals(there=cython.ulonglong)
    cpdef bint is_next(self, long long src, Tell m) except -1
    cpdef bint take_list(self, long long first, tuple rest) except -1
    cpdef bint ask_suspects(self, tuple named) except -1
    cpdef bint tell_changed(self, long long peer) except -1
    @cython.locals(old=cython.longlong, table=KeptChordTable)
    cpdef bint on_notify(self, long long src, Notify m) except -1
    @cython.locals(lowest=cython.longlong, table=KeptChordTable)
    cpdef bint fix_finger(self) except -1
    cpdef bint find_any(self) except -1

cdef class ChordLiteral(Chord):
    pass
