from cpython.ref cimport PyObject
from fairgate.core.message cimport Message

cdef struct Event:
    long long time
    long long order
    long long dst
    long long src
    long long kind
    PyObject* msg

cdef struct Lane:
    Event* ring
    long long first
    long long size
    long long mask
    long long last_time

cdef class EventQueue:
    cdef Event* heap
    cdef long long in_heap
    cdef long long capacity
    cdef Lane lanes[2]
    cdef readonly long long pushed
    cdef readonly long long time
    cdef readonly long long kind
    cdef readonly long long dst
    cdef readonly long long src
    cdef readonly Message msg
    cpdef void push(self, long long time, long long kind, long long dst, long long src, Message msg, long long lane) except *
    cpdef bint pop(self) except -1
    cdef int push_heap(self, Event event) except -1
    cdef int push_lane(self, Lane* lane, Event event) except -1
    cdef Event pop_heap(self) noexcept
    cdef void take(self, Event* event) noexcept

cdef class Tally:
    cdef PyObject* kinds[32]
    cdef long long numbers[32]
    cdef int used
    cpdef void count(self, Message msg) except *
