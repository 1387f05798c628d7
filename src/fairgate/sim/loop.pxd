from cpython.ref cimport PyObject
from fairgate.core.message cimport Message
from fairgate.core.node cimport Node
from fairgate.core.outbox cimport Outbox

cdef struct Event:
    long long time
    long long order
    long long src
    PyObject* msg
    int dst
    int kind  # in the lane of messages: the gate that will be looked at, or NIL

cdef struct Lane:
    Event* ring
    long long first
    long long size
    long long mask
    long long last_time

cdef class Loop(Outbox):
    cdef readonly long long now, acting, events, pushed
    cdef public bint plain
    cdef public long long fixed
    cdef readonly list nodes
    cdef PyObject*** gates  # of each node, if it has any
    cdef long long* received
    cdef readonly long long n
    cdef Event* heap
    cdef long long in_heap, capacity
    cdef Lane lanes[2]
    cdef PyObject* kinds[32]
    cdef long long counts[32]
    cdef long long passed[32]
    cdef bint gated[32]
    cdef bint keyed[32]
    cdef int fetches
    cdef bint asks
    cdef unsigned long long near
    cdef int kinds_used
    cpdef void place(self, long long me, Node node) except *
    cpdef void push(self, long long time, long long kind, long long dst, long long src, Message msg) except *
    cpdef void push_exit(self, long long time, long long seat, long long request) except *
    cpdef void release(self, long long seat, long long request) except *
    cpdef bint run(self, long long most) except -1
    cpdef void stray(self, long long dst, Message msg) except *
    cpdef void carry(self, long long dst, Message msg) except *
    cpdef void handle(self, long long kind, long long dst, long long src, Message msg) except *
    cpdef void clear(self) except *
    cdef void forget(self) noexcept
    cdef int count(self, PyObject* kind) except -1
    cdef int gate_for(self, long long dst, Message msg, int kind) noexcept
    cdef int post(self, long long dst, Message msg, int kind) except -1
    cdef int reach(self, long long dst, long long src, Message msg) except -1
    cdef int append(self, Lane* lane, long long time, long long dst, long long src, PyObject* msg, int kind) except -1
    cdef int push_heap(self, Event* event) except -1
    cdef void pop_heap(self) noexcept
    cdef int grow_lane(self, Lane* lane) except -1
