cimport cython
from fairgate.core.message cimport Message
from fairgate.core.mutex cimport Mutex
from fairgate.core.tuples cimport replaced

cdef long long NIL

@cython.final
cdef class Request(Message):
    cdef readonly long long r

@cython.final
cdef class Token(Message):
    cdef readonly long long slot, fence

@cython.final
cdef class Child(Message):
    cdef readonly long long r

@cython.final
cdef class TokenLocations(Message):
    cdef readonly tuple a
    cdef readonly long long b

@cython.final  # direct calls between its handlers: 5 % fewer instructions an event
cdef class FairK(Mutex):
    cdef Request my_request
    cdef public bint parent_on_child, token_present, is_coordinator
    cdef public long long k, parent, next, child, slot, fence, counter_number
    cdef public tuple token_locations
    cpdef void on_request(self, Request m) except *
    @cython.locals(c=cython.longlong, a=tuple)
    cpdef void assign(self, long long r) except *
    cpdef void on_token(self, Token m) except *
    cpdef void on_child(self, Child m) except *
    cpdef void on_token_locations(self, TokenLocations m) except *
    cpdef void take_token(self) except *
    cpdef void send_token(self, long long r) except *

@cython.locals(m=Token)
cpdef Token new_token(long long slot, long long fence)

@cython.locals(m=Child)
cdef Child new_child(long long r)

@cython.locals(m=TokenLocations)
cpdef TokenLocations new_token_locations(tuple a, long long b)
