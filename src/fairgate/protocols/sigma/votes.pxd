cimport cython
from fairgate.core.keyed cimport Keyed
from fairgate.core.keyspace cimport clockwise, place_of

cdef long long NIL, NEVER

@cython.final
cdef class Request(Keyed):
    cdef readonly long long i, client, life, ts, age

@cython.final
cdef class Release(Keyed):
    cdef readonly long long i, client, life, ts

@cython.final
cdef class Yield(Keyed):
    cdef readonly long long i, client, life, ts, inc, grant

@cython.final
cdef class Response(Keyed):
    cdef readonly long long i, client, life, ts, age, node, inc, seq, grant, owner, owner_ts, clock, wait
    cdef readonly bint wanted

@cython.final
cdef class Resp:
    cdef public long long i, weight, node, inc, seq, age, owner, owner_ts, grant, until, due, yielded, hold, delay
    cdef public unsigned long long key
    cdef public bint silent, wanted
    cpdef void clear(self) noexcept

@cython.final
cdef class Waiter:
    cdef public long long ts, client, life, age
    cpdef bint is_before(self, long long ts, long long client) noexcept

@cython.final
cdef class Replica:
    cdef public long long i, Cowner, Towner, life, age, grant, until, Tcs, busy_since
    cdef public list Queue
    cdef public dict waiting
    @cython.locals(low=cython.longlong, high=cython.longlong, middle=cython.longlong, w=Waiter)
    cpdef long long place(self, long long ts, long long client) noexcept
    cpdef int insert(self, Waiter w) except -1
    cpdef int remove(self, Waiter w) except -1

cpdef object left(long long at, long long now)
cpdef object moment(long long left, long long now)

@cython.final
cdef class Ballot:
    cdef readonly tuple keys, weights
    cdef readonly long long whole, needed

@cython.locals(m=Request)
cpdef Request new_request(
    long long gate, unsigned long long target, long long i, long long client, long long life, long long ts, long long age
)

@cython.locals(m=Release)
cpdef Release new_release(
    long long gate, unsigned long long target, long long i, long long client, long long life, long long ts
)

@cython.locals(r=Resp)
cpdef Resp new_resp(long long i, unsigned long long key, long long weight)

@cython.locals(w=Waiter)
cpdef Waiter new_waiter(long long ts, long long client, long long life, long long age)
