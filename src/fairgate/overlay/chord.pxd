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
    cpdef int become_member(self, long long src, Tell m) except -1
    @cython.locals(away=cython.ulonglong, first=cython.longlong, between=cython.longlong, is_nearer=cython.bint)
    cpdef int on_tell(self, long long src, Tell m) except -1
    @cython.locals(there=cython.ulonglong)
    cpdef bint is_next(self, long long src, Tell m) except -1
    cpdef int take_list(self, long long first, tuple rest) except -1
    cpdef int tell_changed(self, long long peer) except -1
    @cython.locals(old=cython.longlong, table=KeptChordTable)
    cpdef int on_notify(self, long long src, Notify m) except -1
    @cython.locals(lowest=cython.longlong, table=KeptChordTable)
    cpdef int fix_finger(self) except -1
    cpdef int find_any(self) except -1

cdef class ChordLiteral(Chord):
    pass
