cimport cython
from fairgate.core.message cimport Message
from fairgate.core.mutex cimport Mutex
from fairgate.protocols.fair_k cimport Request, Token, TokenLocations, new_token, new_token_locations

cdef long long NIL

@cython.final
cdef class NumberedChild(Message):
    cdef readonly long long b, r

@cython.locals(m=NumberedChild)
cdef NumberedChild new_numbered_child(long long b, long long r)

@cython.final
cdef class FairKBounded(Mutex):
    cdef Request my_request
    cdef public bint parent_on_child, is_coordinator, deferred
    cdef public long long k, parent, next, child, slot, fence, counter_number, turn, reentry, reentries
    cdef public tuple idle, token_locations
    cpdef void ask(self) except *
    cpdef void on_request(self, Request m) except *
    @cython.locals(b=cython.longlong, c=cython.longlong, a=tuple)
    cpdef void assign(self, long long r) except *
    @cython.locals(b=cython.longlong, c=cython.longlong, a=tuple)
    cpdef void assign_itself(self) except *
    cpdef void on_token(self, Token m) except *
    @cython.locals(c=cython.longlong)
    cpdef void on_child(self, NumberedChild m) except *
    cpdef void on_token_locations(self, TokenLocations m) except *
    cpdef bint nobody_waits(self) except -1
    cpdef bint waits(self) except -1
    cpdef void begin_turn(self, long long c) except *
    cpdef void take_token(self, long long c) except *
    cpdef long long take_idle(self, long long c) except *
    cpdef void enter_with(self, long long slot, long long fence) except *
