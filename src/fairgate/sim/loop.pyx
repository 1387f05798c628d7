"""The simulator's inner loop in C: a 4-ary heap of structs, and a ring buffer for each lane.

The pure Python twin, loop.py, explains the design.
"""

cimport cython
from cpython cimport array
from cpython.object cimport Py_TYPE
from cpython.ref cimport PyObject, Py_DECREF, Py_INCREF, Py_XDECREF
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memset

from fairgate.core.keyed cimport Gated, Keyed
from fairgate.core.keyspace cimport apart, place_of
from fairgate.core.message cimport Message
from fairgate.core.node cimport Node
from fairgate.core.outbox cimport Outbox
from fairgate.core.tuples cimport arriving
from fairgate.overlay.overlay cimport Overlay
from fairgate.sim.large_pages cimport put_on_large_pages
from fairgate.sim.prefetch cimport FAR, NOTHING, fetch_ahead, gates_of, prefetch_of, what_to_fetch

cdef enum:
    DELIVER = 0  # as in events.py
    ACQUIRE = 1
    RELEASE = 2
    CANCEL = 3
    PLANNED = 5

cdef enum:
    MOST_KINDS = 32
    LEAST = 64  # initial capacity of a heap or lane, in events

cdef extern from *:
    """
    #define FETCH_LINE(at) __builtin_prefetch((const char*)(at))
    #define KIND_HASH(cls) (((size_t)(cls) >> 5) & 31)
    #define FETCH_LINES(at) (FETCH_LINE(at), FETCH_LINE((const char*)(at) + 64))

    /* Py_DECREF, without a detour through Python's library */
    static CYTHON_INLINE void drop_message(PyObject* message) {
    #ifndef Py_GIL_DISABLED
        if (Py_REFCNT(message) == 1) {
            Py_SET_REFCNT(message, 0);
            Py_TYPE(message)->tp_dealloc(message);
            return;
        }
    #endif
        Py_DECREF(message);
    }
    """
    # Begin to load the first 128 bytes of an object. With 100,000 nodes, the next one is in no cache.
    void FETCH_2 "FETCH_LINES"(PyObject* at) noexcept
    int KIND_HASH(PyObject* cls) noexcept
    void drop_message(PyObject* message) noexcept

cdef extern from *:
    const long long END "((1LL << 62) - 1)"  # of the clock, as in loop.py: later events are not handled

cdef long long LAST = (<unsigned long long>-1) >> 1  # a sequence number after all others


cdef inline bint before(Event* a, Event* b) noexcept:
    return a.time < b.time or (a.time == b.time and a.order < b.order)


cdef inline long long first_but_messages(Queue* queue, long long until) noexcept:
    """The time up to which messages may be delivered: that of the first other event, or `until`."""
    if queue.in_heap > 0 and queue.heap.time < until:
        until = queue.heap.time
    if queue.exits.size > 0 and queue.exits.ring[queue.exits.first].time < until:
        until = queue.exits.ring[queue.exits.first].time
    return until


cdef inline void expect(Loop loop, long long seat) noexcept:
    """Prefetch what a request or an exit of this seat will need. With several gates, it is left to chance."""
    if loop.one_gate:
        FETCH_2(loop.places[seat].seat)
        FETCH_2(loop.places[seat].node)


cdef inline int reach(Loop loop, int dst, long long src, PyObject* msg) except -1:
    """Deliver without checks. The node needs no reference: nothing replaces a node during its step."""
    cdef Place* place = &loop.places[dst]
    loop.acting = dst
    place.received += 1
    (<Node>place.node).now = loop.now
    (<Node>place.node).receive(src, <Message>msg)
    return 0


cdef class Loop(Outbox):
    def __init__(self, n):
        self.fixed = -1
        self.nodes = []
        self.seat = []
        self.n = n
        self.places = <Place*>calloc(n, sizeof(Place))
        self.gates = <PyObject***>calloc(n, sizeof(PyObject**))
        if self.places == NULL or self.gates == NULL:
            raise MemoryError
        self.add_queues(1)

    def __dealloc__(self):
        global arriving
        cdef int i
        self.forget()  # not clear(), which is looked up in the class: that may be gone by now
        if self.arriving != NULL:  # the last step has failed
            arriving = NULL
            Py_XDECREF(self.arriving)
        for i in range(self.queues_used):
            free(self.queues[i].heap)
            free(self.queues[i].messages.ring)
            free(self.queues[i].exits.ring)
        free(self.queues)
        for i in range(self.kinds_used):
            Py_XDECREF(self.kinds[i])
        if self.places != NULL:
            for i in range(self.n):
                Py_XDECREF(self.places[i].seat)
        free(self.places)
        free(self.gates)

    @cython.final
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
        self.places[me].node = <PyObject*>node
        self.fetches = what_to_fetch(node)  # the same for every node: all have the same stack
        if self.fetches != NOTHING:
            self.gates[me] = gates_of(node)
            self.of_protocol = prefetch_of(node)
            self.asks = (<Overlay>node).asks
            self.near = 2 * (<unsigned long long>-1 // self.n)

    cpdef bint make_room(self, long long seats) except -1:
        self.one_gate = seats == self.n
        self.seat = [] if self.one_gate else [None] * seats

    cpdef bint put_seat(self, long long number, Seat seat) except -1:
        if self.one_gate:
            Py_INCREF(seat)
            Py_XDECREF(self.places[number].seat)
            self.places[number].seat = <PyObject*>seat
        else:
            self.seat[number] = seat

    cpdef bint use_large_pages(self) except -1:
        if self.one_gate and self.n > 0:
            put_on_large_pages(self.places, self.n)

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
        cdef Queue* queue = self.queue if self.turns == 0 else &self.queues[1 + seat % self.turns]
        cdef Lane* lane = &queue.exits
        if lane.size > 0 and lane.ring[(lane.first + lane.size - 1) & lane.mask].time > time:
            self.push(time, RELEASE, seat, request, None)
        else:
            self.append(lane, time, seat, request, NULL, RELEASE)
            if time < self.bound and queue == self.queue:
                self.bound = time

    cdef inline int append(self, Lane* lane, long long time, long long dst, long long src, PyObject* msg, int kind) except -1:
        """Append an event to a lane, which takes over the caller's reference to the message."""
        cdef Event* event
        if lane.size > lane.mask:
            self.grow_lane(lane)
        event = &lane.ring[(lane.first + lane.size) & lane.mask]
        lane.size += 1
        event.time = time
        event.dst = dst
        event.src = src
        event.msg = msg
        event.kind = kind
        return 0

    @cython.final
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

    @cython.final
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
        if event.time < self.bound and queue == self.queue:
            self.bound = event.time
        return 0

    @cython.final
    cdef int pop_heap(self, Queue* queue) except -1:
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
        if n < queue.capacity >> 3 and queue.capacity > LEAST:
            self.shrink_heap(queue)
        return 0

    @cython.final
    cdef int shrink_heap(self, Queue* queue) except -1:
        """Return memory: at first the requests of all nodes are in the heap, later hardly any (40 bytes per node)."""
        cdef Event* heap = <Event*>realloc(queue.heap, (queue.capacity >> 1) * sizeof(Event))
        if heap == NULL:
            raise MemoryError
        queue.heap = heap
        queue.capacity >>= 1
        return 0

    cpdef bint send(self, long long dst, Message msg) except -1:
        self.send_otherwise(dst, msg)

    cdef bint send_direct(self, long long dst, Message msg) except -1:
        cdef PyObject* cls = <PyObject*>Py_TYPE(msg)
        cdef int kind = self.known[KIND_HASH(cls)]
        cdef Lane* lane = &self.queue.messages
        cdef Event* event
        if self.straight and self.kinds[kind] == cls and <unsigned long long>dst < <unsigned long long>self.n and lane.size <= lane.mask:
            FETCH_2(self.places[dst].node)
            Py_INCREF(msg)
            self.counts[kind] += 1
            event = &lane.ring[(lane.first + lane.size) & lane.mask]
            lane.size += 1
            event.time = self.now + self.fixed
            event.dst = dst
            event.src = self.acting
            event.msg = <PyObject*>msg
            return 0
        return self.send_otherwise(dst, msg)

    cdef int send_otherwise(self, long long dst, Message msg) except -1:
        """Send a message that may need more than its place in the lane.

        Not final: the compiler would make it part of `send_direct`, which would have to save registers for it.
        """
        cdef int kind = self.kind_of(<PyObject*>Py_TYPE(msg))
        self.counts[kind] += 1
        return self.post(dst, msg, kind)

    cpdef bint pass_on(self, long long dst, Message msg) except -1:
        cdef int kind = self.kind_of(<PyObject*>Py_TYPE(msg))
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

    cdef inline int kind_of(self, PyObject* cls) except -1:
        """The index of the counters of this message class.

        The index is looked for where the class left it the last time, at a place given by its address. Two classes with
        the same place only cost time.
        """
        cdef int* known = &self.known[KIND_HASH(cls)]
        if self.kinds[known[0]] != cls:
            known[0] = self.find_kind(cls)
        return known[0]

    @cython.final
    cdef int find_kind(self, PyObject* cls) except -1:
        cdef int i
        for i in range(self.kinds_used):
            if self.kinds[i] == cls:
                return i
        if self.kinds_used == MOST_KINDS:
            raise OverflowError(f"more than {MOST_KINDS} kinds of messages in one run")
        Py_INCREF(<object>cls)
        self.kinds[self.kinds_used] = cls
        self.gated[self.kinds_used] = issubclass(<object>cls, Gated)
        self.keyed[self.kinds_used] = issubclass(<object>cls, Keyed)
        self.kinds_used += 1
        return self.kinds_used - 1

    cpdef bint run(self, long long most) except -1:
        cdef long long left = most, done, until, order = LAST
        self.straight = self.fixed >= 0 and self.turns == 0 and self.fetches == NOTHING
        while left > 0:
            if self.turns == 0:
                left -= self.stretch(END, LAST, left)
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
                done = self.stretch(END, LAST, 1)
                left -= done
                if done == 0 and not self.moved:
                    self.moved = True
                    break
                self.moved = False
                self.give_turn(self.first_turn)
        self.straight = False  # what it depends on may change between two calls
        self.events += most - left
        return left == 0

    @cython.final
    cdef void give_turn(self, long long turn) noexcept:
        if self.now > self.latest:
            self.latest = self.now
        self.turn = turn if turn <= self.turns else 0
        self.queue = &self.queues[self.turn]

    @cython.final
    cdef long long first_of_all(self, long long* order) noexcept:
        """The time of the next event that concerns all gates; its sequence number goes into `order`."""
        cdef Queue* queue = self.queues
        cdef long long time = END
        order[0] = LAST
        if queue.in_heap > 0 and queue.heap.time <= END:
            time = queue.heap.time
            order[0] = queue.heap.order
        if queue.messages.size > 0 and queue.messages.ring[queue.messages.first].time < time:
            time = queue.messages.ring[queue.messages.first].time
            order[0] = 0
        return time

    @cython.final
    cdef long long stretch(self, long long until, long long order, long long most) except -1:
        """Handle up to `most` events of the queue whose turn it is; return how many there were.

        Stops at (`until`, `order`), the next event that concerns all gates.
        """
        global arriving
        cdef Queue* queue = self.queue
        cdef Event* front
        cdef Event event
        cdef Lane* messages = &queue.messages
        cdef Lane* exits = &queue.exits
        cdef bint plain = self.plain
        cdef long long i
        self.bound = first_but_messages(queue, until)
        for i in range(most):
            front = &messages.ring[messages.first]
            if messages.size > 0 and front.time <= self.bound:
                if self.fetches != NOTHING and messages.size > FAR:
                    fetch_ahead(self.fetches, self.of_protocol, <PyObject*>self.nodes, self.gates, messages)
                messages.first = (messages.first + 1) & messages.mask
                messages.size -= 1
            else:
                front = &exits.ring[exits.first]
                if exits.size > 0 and (queue.in_heap == 0 or front.time <= queue.heap.time):
                    if front.time > until:
                        return i
                    exits.first = (exits.first + 1) & exits.mask
                    exits.size -= 1
                    if exits.size > 0:
                        expect(self, exits.ring[exits.first].dst)
                    self.now = front.time
                    self.bound = first_but_messages(queue, until)
                    self.release(front.dst, front.src)
                    continue
                front = queue.heap
                if queue.in_heap == 0 or front.time > until or (front.time == until and front.order >= order):
                    return i
                event = front[0]
                front = &event
                self.pop_heap(queue)
                if queue.in_heap > 0 and queue.heap.kind == ACQUIRE:
                    expect(self, queue.heap.dst)
                self.bound = first_but_messages(queue, until)
                if event.msg == NULL:
                    self.now = event.time
                    self.handle(event.kind, event.dst, event.src, None)
                    continue
            self.now = front.time
            self.arriving = front.msg
            if plain:
                arriving = front.msg
                reach(self, front.dst, front.src, front.msg)
            else:
                self.handle(DELIVER, front.dst, front.src, <Message>front.msg)
            arriving = NULL
            drop_message(self.arriving)
            self.arriving = NULL
        return most

    cpdef bint count_arrival(self, long long dst) except -1:
        self.places[dst].received += 1

    cpdef bint clear(self) except -1:
        self.forget()

    @cython.final
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
        cdef array.array found = array.clone(array.array("q"), self.n, zero=False)
        cdef long long i
        for i in range(self.n):
            found.data.as_longlongs[i] = self.places[i].received
        return found
