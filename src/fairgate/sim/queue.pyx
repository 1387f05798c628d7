"""The event queue in C: a 4-ary heap of structs, and a ring buffer for each lane.

The plain twin is queue.py. A lane holds events that came in time order; whatever comes out of order
goes to the heap, so a wrong hint costs time and never order. Popping compares the fronts of the heap
and the lanes by (time, order of pushing).
"""

from cpython.object cimport Py_TYPE
from cpython.ref cimport PyObject, Py_INCREF, Py_XDECREF
from libc.stdlib cimport free, malloc, realloc

from fairgate.core.message cimport Message

HEAP = -1
LANES = 2


cdef inline bint before(Event* a, Event* b) noexcept:
    return a.time < b.time or (a.time == b.time and a.order < b.order)


cdef class EventQueue:
    def __cinit__(self):
        cdef int i
        self.capacity = 1024
        self.heap = <Event*>malloc(self.capacity * sizeof(Event))
        for i in range(2):
            self.lanes[i].mask = 1023
            self.lanes[i].ring = <Event*>malloc(1024 * sizeof(Event))
            if self.lanes[i].ring == NULL:
                raise MemoryError
        if self.heap == NULL:
            raise MemoryError

    def __dealloc__(self):
        cdef long long i, j
        for i in range(self.in_heap):
            Py_XDECREF(self.heap[i].msg)
        free(self.heap)
        for i in range(2):
            for j in range(self.lanes[i].size):
                Py_XDECREF(self.lanes[i].ring[(self.lanes[i].first + j) & self.lanes[i].mask].msg)
            free(self.lanes[i].ring)

    cpdef void push(self, long long time, long long kind, long long dst, long long src, Message msg, long long lane) except *:
        cdef Event event
        self.pushed += 1
        event.time = time
        event.order = self.pushed
        event.dst = dst
        event.src = src
        event.kind = kind
        if msg is None:
            event.msg = NULL
        else:
            Py_INCREF(msg)
            event.msg = <PyObject*>msg
        if lane >= 0 and (self.lanes[lane].size == 0 or self.lanes[lane].last_time <= time):
            self.push_lane(&self.lanes[lane], event)
        else:
            self.push_heap(event)

    cdef int push_lane(self, Lane* lane, Event event) except -1:
        cdef Event* grown
        cdef long long i
        if lane.size > lane.mask:
            grown = <Event*>malloc(2 * lane.size * sizeof(Event))
            if grown == NULL:
                raise MemoryError
            for i in range(lane.size):
                grown[i] = lane.ring[(lane.first + i) & lane.mask]
            free(lane.ring)
            lane.ring = grown
            lane.first = 0
            lane.mask = 2 * lane.size - 1
        lane.ring[(lane.first + lane.size) & lane.mask] = event
        lane.size += 1
        lane.last_time = event.time
        return 0

    cdef int push_heap(self, Event event) except -1:
        cdef long long i = self.in_heap, parent
        cdef Event* heap
        if i == self.capacity:
            heap = <Event*>realloc(self.heap, 2 * self.capacity * sizeof(Event))
            if heap == NULL:
                raise MemoryError
            self.heap = heap
            self.capacity *= 2
        heap = self.heap
        self.in_heap += 1
        while i > 0:
            parent = (i - 1) >> 2
            if not before(&event, &heap[parent]):
                break
            heap[i] = heap[parent]
            i = parent
        heap[i] = event
        return 0

    cdef Event pop_heap(self) noexcept:
        cdef Event* heap = self.heap
        cdef Event top = heap[0], last
        cdef long long i = 0, child, c, end, n
        self.in_heap -= 1
        n = self.in_heap
        last = heap[n]
        while True:
            c = 4 * i + 1
            if c >= n:
                break
            end = c + 4 if c + 4 < n else n
            child = c
            c += 1
            while c < end:
                if before(&heap[c], &heap[child]):
                    child = c
                c += 1
            if not before(&heap[child], &last):
                break
            heap[i] = heap[child]
            i = child
        heap[i] = last
        return top

    cdef void take(self, Event* event) noexcept:
        self.time = event.time
        self.kind = event.kind
        self.dst = event.dst
        self.src = event.src
        if event.msg == NULL:
            self.msg = None
        else:
            self.msg = <Message>event.msg
            Py_XDECREF(event.msg)

    cpdef bint pop(self) except -1:
        cdef Event* best = NULL
        cdef Event* front
        cdef Event top
        cdef Lane* lane
        cdef Lane* from_lane = NULL
        cdef int i
        if self.in_heap > 0:
            best = self.heap
        for i in range(2):
            lane = &self.lanes[i]
            if lane.size > 0:
                front = &lane.ring[lane.first]
                if best == NULL or before(front, best):
                    best = front
                    from_lane = lane
        if best == NULL:
            return False
        if from_lane == NULL:
            top = self.pop_heap()
            self.take(&top)
        else:
            from_lane.first = (from_lane.first + 1) & from_lane.mask
            from_lane.size -= 1
            self.take(best)
        return True

    def size(self):
        return self.in_heap + self.lanes[0].size + self.lanes[1].size

    def messages(self):
        cdef long long i, j
        cdef list found = []
        for i in range(self.in_heap):
            if self.heap[i].msg != NULL:
                found.append(<object>self.heap[i].msg)
        for i in range(2):
            for j in range(self.lanes[i].size):
                if self.lanes[i].ring[(self.lanes[i].first + j) & self.lanes[i].mask].msg != NULL:
                    found.append(<object>self.lanes[i].ring[(self.lanes[i].first + j) & self.lanes[i].mask].msg)
        return iter(found)


cdef class Tally:
    """Messages counted by kind: a protocol has a handful of kinds, so a short scan beats a dict."""

    def __dealloc__(self):
        cdef int i
        for i in range(self.used):
            Py_XDECREF(self.kinds[i])

    cpdef void count(self, Message msg) except *:
        cdef PyObject* kind = <PyObject*>Py_TYPE(msg)
        cdef int i
        for i in range(self.used):
            if self.kinds[i] == kind:
                self.numbers[i] += 1
                return
        if self.used == 32:
            raise OverflowError("more than 32 kinds of messages in one run")
        Py_INCREF(type(msg))
        self.kinds[self.used] = kind
        self.numbers[self.used] = 1
        self.used += 1

    def by_tag(self):
        cdef int i
        return dict(sorted([((<object>self.kinds[i]).tag, self.numbers[i]) for i in range(self.used)]))

    def total(self):
        cdef int i
        cdef long long total = 0
        for i in range(self.used):
            total += self.numbers[i]
        return total
