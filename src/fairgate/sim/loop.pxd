cimport cython
from cpython.ref cimport PyObject
from fairgate.core.message cimport Message
from fairgate.core.node cimport Node
from fairgate.core.outbox cimport Outbox
from fairgate.core.prefetch cimport Prefetch
from fairgate.sim.seat cimport Seat

cdef struct Event:
    long long time
    long long order
    long long src
    PyObject* msg
    int dst
    int kind  # in the lane of messages: the gate whose state to prefetch, or NIL

cdef struct Lane:
    Event* ring
    long long first
    long long size
    long long mask

cdef struct Queue:
    Event* heap
    long long in_heap
    long long capacity
    Lane messages
    Lane exits

cdef struct Place:  # what a step needs first, in one piece of memory
    PyObject* node  # borrowed from `nodes`
    PyObject* seat  # if there is one gate: owned
    long long received

cdef class Loop(Outbox):
    cdef readonly long long now, latest, acting, events, pushed
    cdef public long long common
    cdef public bint plain
    cdef public long long fixed
    cdef readonly list nodes
    cdef PyObject*** gates  # by node: the list of its gates' nodes, if it has any
    cdef Place* places  # by node
    cdef public list seat  # by number; empty if there is one gate
    cdef bint one_gate
    cdef readonly long long n
    cdef Queue* queues  # of all gates together, followed by one per gate if they take turns
    cdef Queue* queue  # the one whose turn it is
    cdef long long queues_used
    cdef long long first_turn, next_turn
    cdef bint moved
    cdef readonly long long turns, turn  # how many gates take turns; the one whose turn it is, 1..turns, or 0
    cdef PyObject* kinds[32]
    cdef long long counts[32]
    cdef long long passed[32]
    cdef bint gated[32]
    cdef bint keyed[32]
    cdef int fetches
    cdef Prefetch of_protocol
    cdef bint asks
    cdef unsigned long long near
    cdef int known[32]
    cdef int kinds_used
    cdef bint straight  # do messages go into the lane without further ado?
    cdef PyObject* arriving  # the message whose step is running; its reference is given up afterwards
    cdef long long bound  # messages up to this time come before all other events
    cpdef bint take_turns(self, long long gates, long long first, long long every) except -1
    @cython.final
    cdef int add_queues(self, long long count) except -1
    @cython.final
    cdef void give_turn(self, long long turn) noexcept
    @cython.final
    cdef Queue* queue_at(self, long long kind, long long seat) noexcept
    @cython.final
    cdef long long first_of_all(self, long long* order) noexcept
    @cython.final
    cdef long long stretch(self, long long until, long long order, long long most) except -1
    cpdef long long size(self)
    cpdef bint place(self, long long me, Node node) except -1
    @cython.final
    cdef inline Node node_at(self, long long me):
        return <Node>self.places[me].node
    cpdef bint make_room(self, long long seats) except -1
    cpdef bint use_large_pages(self) except -1
    cpdef bint put_seat(self, long long number, Seat seat) except -1
    @cython.final
    cdef inline Seat seat_at(self, long long number):
        if not self.one_gate:
            return <Seat>self.seat[number]
        return <Seat>self.places[number].seat if self.places[number].seat != NULL else None
    cpdef bint push(self, long long time, long long kind, long long dst, long long src, Message msg) except -1
    cpdef bint push_exit(self, long long time, long long seat, long long request) except -1
    cpdef bint release(self, long long seat, long long request) except -1
    cpdef bint run(self, long long most) except -1
    cpdef bint stray(self, long long dst, Message msg) except -1
    cpdef bint carry(self, long long dst, Message msg) except -1
    cpdef bint handle(self, long long kind, long long dst, long long src, Message msg) except -1
    cpdef bint count_arrival(self, long long dst) except -1
    cpdef bint clear(self) except -1
    @cython.final
    cdef void forget(self) noexcept
    @cython.final
    cdef int kind_of(self, PyObject* cls) except -1
    @cython.final
    cdef int find_kind(self, PyObject* cls) except -1
    @cython.final
    cdef int shrink_heap(self, Queue* queue) except -1
    @cython.final
    cdef int gate_for(self, long long dst, Message msg, int kind) noexcept
    cdef bint send_direct(self, long long dst, Message msg) except -1
    cdef int send_otherwise(self, long long dst, Message msg) except -1
    @cython.final
    cdef int post(self, long long dst, Message msg, int kind) except -1
    @cython.final
    cdef int append(self, Lane* lane, long long time, long long dst, long long src, PyObject* msg, int kind) except -1
    @cython.final
    cdef int push_heap(self, Queue* queue, Event* event) except -1
    @cython.final
    cdef int pop_heap(self, Queue* queue) except -1
    @cython.final
    cdef int grow_lane(self, Lane* lane) except -1
