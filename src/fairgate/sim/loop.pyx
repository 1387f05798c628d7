"""The simulator's inner loop in C: a 4-ary heap of structs, and a ring buffer for each lane.

The pure Python twin, loop.py, explains the design.
"""

from cpython.object cimport Py_TYPE
from cpython.ref cimport PyObject, Py_DECREF, Py_INCREF, Py_XDECREF
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memset

from fairgate.core.keyed cimport Gated, Keyed
from fairgate.core.keyspace cimport apart, place_of
from fairgate.core.message cimport Message
from fairgate.core.node cimport Node
from fairgate.core.outbox cimport Outbox
from fairgate.overlay.overlay cimport Overlay
from fairgate.sim.prefetch cimport FAR, NOTHING, fetch_ahead, gates_of, what_to_fetch

cdef enum:
    DELIVER = 0  # as in events.py
    ACQUIRE = 1
    RELEASE = 2
    CANCEL = 3
    PLANNED = 5

cdef enum:
    LEAST = 64  # initial capacity of a heap or lane, in events

cdef long long NEVER = (<unsigned long long>-1) >> 1


cdef inline bint before(Event* a, Event* b) noexcept:
    return a.time < b.time or (a.time == b.time and a.order < b.order)


cdef class Loop(Outbox):
    def __init__(self, n):
        self.fixed = -1
        self.nodes = []
        self.n = n
        self.received = <long long*>calloc(n, sizeof(long long))
        self.gates = <PyObject***>calloc(n, sizeof(PyObject**))
        if self.received == NULL or self.gates == NULL:
            raise MemoryError
        self.add_queues(1)

    def __dealloc__(self):
        cdef int i
        self.forget()  # not clear(), which is looked up in the class: that may be gone by now
        for i in range(self.queues_used):
            free(self.queues[i].heap)
            free(self.queues[i].messages.ring)
            free(self.queues[i].exits.ring)
        free(self.queues)
        for i in range(self.kinds_used):
            Py_XDECREF(self.kinds[i])
        free(self.received)
        free(self.gates)

    cdef int add_queues(self, long long count) except -1:
        cdef Queue* queue
        cdef Queue* grown = <Queue*>realloc(self.queues, (self.queues_used + count) * sizeof(Queue))
        if grown == NULL:
            raise MemoryError
        self.queues = grown
        for _ in range(count):
            queue = &grown[self.queues_used]
            self.queues_used += 1
            memset(queue, 0, sizeof(Queue))
            queue.capacity = LEAST
            queue.messages.mask = queue.exits.mask = LEAST - 1
            queue.heap = <Event*>malloc(LEAST * sizeof(Event))
            queue.messages.ring = <Event*>malloc(LEAST * sizeof(Event))
            queue.exits.ring = <Event*>malloc(LEAST * sizeof(Event))
            if queue.heap == NULL or queue.messages.ring == NULL or queue.exits.ring == NULL:
                raise MemoryError
        self.queue = self.queues
        return 0

    cpdef bint take_turns(self, long long gates, long long first, long long every) except -1:
        self.add_queues(gates)
        self.turns = gates
        self.first_turn = first + 1
        self.next_turn = every
        self.moved = True

    cpdef bint place(self, long long me, Node node) except -1:
        if me == len(self.nodes):
            self.nodes.append(node)
        else:
            self.nodes[me] = node
        self.fetches = what_to_fetch(node)  # the same for every node: all have the same stack
        if self.fetches != NOTHING:
            self.gates[me] = gates_of(node)
            self.asks = (<Overlay>node).asks
            self.near = 2 * (<unsigned long long>-1 // self.n)

    cpdef bint push(self, long long time, long long kind, long long dst, long long src, Message msg) except -1:
        cdef Event event
        cdef Queue* queue = self.queue
        if self.turns > 0:
            queue = self.queue_at(kind, dst)
        self.pushed += 1
        event.time = time
        event.order = self.pushed
        event.dst = dst
        event.src = src
        event.kind = kind
        event.msg = NULL
        if msg is not None:
            Py_INCREF(msg)
            event.msg = <PyObject*>msg
        self.push_heap(queue, &event)

    cdef inline Queue* queue_at(self, long long kind, long long seat) noexcept:
        """The queue of the gate that the event concerns."""
        if kind == PLANNED:
            return self.queues
        if kind == ACQUIRE or kind == RELEASE or kind == CANCEL:
            return &self.queues[1 + seat % self.turns]
        return self.queue

    cpdef bint push_exit(self, long long time, long long seat, long long request) except -1:
        cdef Lane* lane = &self.queue.exits if self.turns == 0 else &self.queues[1 + seat % self.turns].exits
        if lane.size > 0 and lane.last_time > time:
            self.push(time, RELEASE, seat, request, None)
        else:
            self.append(lane, time, seat, request, NULL, RELEASE)

    cdef inline int append(self, Lane* lane, long long time, long long dst, long long src, PyObject* msg, int kind) except -1:
        """Append an event to a lane, which takes over the caller's reference to the message."""
        cdef Event* event
        if lane.size > lane.mask:
            self.grow_lane(lane)
        event = &lane.ring[(lane.first + lane.size) & lane.mask]
        lane.size += 1
        lane.last_time = time
        event.time = time
        event.dst = dst
        event.src = src
        event.msg = msg
        event.kind = kind
        return 0

    cdef int grow_lane(self, Lane* lane) except -1:
        cdef Event* grown = <Event*>malloc(2 * lane.size * sizeof(Event))
        cdef long long i
        if grown == NULL:
            raise MemoryError
        for i in range(lane.size):
            grown[i] = lane.ring[(lane.first + i) & lane.mask]
        free(lane.ring)
        lane.ring = grown
        lane.first = 0
        lane.mask = 2 * lane.size - 1
        return 0

    cdef int push_heap(self, Queue* queue, Event* event) except -1:
        cdef long long i = queue.in_heap, parent
        cdef Event* heap
        if i == queue.capacity:
            heap = <Event*>realloc(queue.heap, 2 * queue.capacity * sizeof(Event))
            if heap == NULL:
                raise MemoryError
            queue.heap = heap
            queue.capacity *= 2
        heap = queue.heap
        queue.in_heap += 1
        while i > 0:
            parent = (i - 1) >> 2
            if not before(event, &heap[parent]):
                break
            heap[i] = heap[parent]
            i = parent
        heap[i] = event[0]
        return 0

    cdef void pop_heap(self, Queue* queue) noexcept:
        """Remove the first event: the last one moves to the top and sinks to its place."""
        cdef Event* heap = queue.heap
        cdef long long i = 0, child, c, end, n
        cdef Event* last
        queue.in_heap -= 1
        n = queue.in_heap
        last = &heap[n]
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
            if not before(&heap[child], last):
                break
            heap[i] = heap[child]
            i = child
        heap[i] = last[0]

    cpdef bint send(self, long long dst, Message msg) except -1:
        cdef int kind = self.count(<PyObject*>Py_TYPE(msg))
        self.counts[kind] += 1
        self.post(dst, msg, kind)

    cpdef bint pass_on(self, long long dst, Message msg) except -1:
        cdef int kind = self.count(<PyObject*>Py_TYPE(msg))
        self.passed[kind] += 1
        self.post(dst, msg, kind)

    cdef inline int post(self, long long dst, Message msg, int kind) except -1:
        cdef Queue* queue = self.queue
        if not 0 <= dst < self.n:
            self.stray(dst, msg)
        elif self.fixed >= 0:
            if self.turns > 0 and self.turn == 0 and self.gated[kind]:
                queue = &self.queues[1 + (<Gated>msg).gate % self.turns]
            Py_INCREF(msg)
            self.append(&queue.messages, self.now + self.fixed, dst, self.acting, <PyObject*>msg, self.gate_for(dst, msg, kind))
        else:
            self.carry(dst, msg)
        return 0

    cdef inline int gate_for(self, long long dst, Message msg, int kind) noexcept:
        """The gate whose state the message will need at `dst`, or NIL.

        NIL if `dst` seems to be only a hop on the way, and the protocol does not look at messages that pass through.
        """
        if self.fetches == NOTHING or not self.gated[kind]:
            return -1
        if self.keyed[kind] and not self.asks and apart(place_of(dst), (<Keyed>msg).target) > self.near:
            return -1
        return <int>(<Gated>msg).gate

    cdef bint count(self, PyObject* kind) except -1:
        """The index of this kind's counters. A protocol has a handful of kinds, so a short scan beats a dict."""
        cdef int i
        for i in range(self.kinds_used):
            if self.kinds[i] == kind:
                return i
        if self.kinds_used == 32:
            raise OverflowError("more than 32 kinds of messages in one run")
        Py_INCREF(<object>kind)
        self.kinds[self.kinds_used] = kind
        self.counts[self.kinds_used] = 0
        self.passed[self.kinds_used] = 0
        self.gated[self.kinds_used] = issubclass(<object>kind, Gated)
        self.keyed[self.kinds_used] = issubclass(<object>kind, Keyed)
        self.kinds_used += 1
        return self.kinds_used - 1

    cpdef bint run(self, long long most) except -1:
        cdef long long left = most, done, until, order = NEVER
        while left > 0:
            if self.turns == 0:
                left -= self.stretch(NEVER, NEVER, left)
                if left > 0:
                    break
            elif self.turn > 0:
                until = self.first_of_all(&order)
                done = self.stretch(until, order, left)
                self.moved |= done > 0
                left -= done
                if left > 0:
                    self.give_turn(self.turn + self.next_turn)
            else:
                done = self.stretch(NEVER, NEVER, 1)
                left -= done
                if done == 0 and not self.moved:
                    self.moved = True
                    break
                self.moved = False
                self.give_turn(self.first_turn)
        self.events += most - left
        return left == 0

    cdef void give_turn(self, long long turn) noexcept:
        if self.now > self.latest:
            self.latest = self.now
        self.turn = turn if turn <= self.turns else 0
        self.queue = &self.queues[self.turn]

    cdef long long first_of_all(self, long long* order) noexcept:
        """The time of the next event that concerns all gates; its sequence number goes into `order`."""
        cdef Queue* queue = self.queues
        cdef long long time = queue.heap.time if queue.in_heap > 0 else NEVER
        order[0] = queue.heap.order if queue.in_heap > 0 else NEVER
        if queue.messages.size > 0 and queue.messages.ring[queue.messages.first].time < time:
            time = queue.messages.ring[queue.messages.first].time
            order[0] = 0
        return time

    cdef long long stretch(self, long long until, long long order, long long most) except -1:
        """Handle up to `most` events of the queue whose turn it is; return how many there were.

        Stops at (`until`, `order`), the next event that concerns all gates.
        """
        cdef Queue* queue = self.queue
        cdef Event* best
        cdef Event* front
        cdef Event other
        cdef Lane* messages = &queue.messages
        cdef Lane* exits = &queue.exits
        cdef Message msg
        cdef long long i, dst, src
        for i in range(most):
            best = queue.heap if queue.in_heap > 0 else NULL
            if exits.size > 0:
                front = &exits.ring[exits.first]
                if best == NULL or front.time <= best.time:
                    best = front
            if messages.size > 0:
                front = &messages.ring[messages.first]
                if best == NULL or front.time <= best.time:
                    if front.time > until:
                        return i
                    if self.fetches != NOTHING and messages.size > FAR:
                        fetch_ahead(self.fetches, <PyObject*>self.nodes, self.gates, messages)
                    messages.first = (messages.first + 1) & messages.mask
                    messages.size -= 1
                    self.now = front.time
                    dst = front.dst
                    src = front.src
                    msg = <Message>front.msg
                    Py_DECREF(msg)  # the queue's reference; `msg` has its own
                    if self.plain:
                        self.reach(dst, src, msg)
                    else:
                        self.handle(DELIVER, dst, src, msg)
                    continue
            if best == NULL or best.time > until or (best.time == until and best == queue.heap and best.order >= order):
                return i
            other = best[0]
            self.now = other.time
            if best != queue.heap:
                exits.first = (exits.first + 1) & exits.mask
                exits.size -= 1
                self.release(other.dst, other.src)
                continue
            self.pop_heap(queue)
            if other.msg == NULL:
                self.handle(other.kind, other.dst, other.src, None)
            else:
                msg = <Message>other.msg
                Py_DECREF(msg)
                if self.plain:
                    self.reach(other.dst, other.src, msg)
                else:
                    self.handle(other.kind, other.dst, other.src, msg)
        return most

    cdef inline bint reach(self, long long dst, long long src, Message msg) except -1:
        """Deliver without checks."""
        cdef Node node = <Node>(<PyObject*>self.nodes[dst])
        self.acting = dst
        self.received[dst] += 1
        node.now = self.now
        node.on_message(src, msg)
        return 0

    cpdef bint clear(self) except -1:
        self.forget()

    cdef void forget(self) noexcept:
        cdef long long q, i
        cdef Queue* queue
        for q in range(self.queues_used):
            queue = &self.queues[q]
            for i in range(queue.in_heap):
                Py_XDECREF(queue.heap[i].msg)
            for i in range(queue.messages.size):
                Py_XDECREF(queue.messages.ring[(queue.messages.first + i) & queue.messages.mask].msg)
            queue.in_heap = queue.messages.size = queue.exits.size = 0

    cpdef bint stray(self, long long dst, Message msg) except -1:
        raise NotImplementedError

    cpdef bint carry(self, long long dst, Message msg) except -1:
        raise NotImplementedError

    cpdef bint release(self, long long seat, long long request) except -1:
        raise NotImplementedError

    cpdef bint handle(self, long long kind, long long dst, long long src, Message msg) except -1:
        raise NotImplementedError

    cpdef long long size(self):
        cdef long long q, found = 0
        for q in range(self.queues_used):
            found += self.queues[q].in_heap + self.queues[q].messages.size + self.queues[q].exits.size
        return found

    def under_way(self):
        cdef long long q, i
        cdef Queue* queue
        cdef list found = []
        for q in range(self.queues_used):
            queue = &self.queues[q]
            for i in range(queue.in_heap):
                if queue.heap[i].msg != NULL:
                    found.append(<object>queue.heap[i].msg)
            for i in range(queue.messages.size):
                found.append(<object>queue.messages.ring[(queue.messages.first + i) & queue.messages.mask].msg)
        return iter(found)

    def sent_by_tag(self):
        cdef int i
        return dict(sorted([((<object>self.kinds[i]).tag, self.counts[i]) for i in range(self.kinds_used)]))

    def passed_by_tag(self):
        cdef int i
        return dict(sorted([((<object>self.kinds[i]).tag, self.passed[i]) for i in range(self.kinds_used) if self.passed[i]]))

    def sent_total(self):
        cdef int i
        cdef long long total = 0
        for i in range(self.kinds_used):
            total += self.counts[i]
        return total

    def loads(self):
        cdef long long i
        return [self.received[i] for i in range(self.n)]
