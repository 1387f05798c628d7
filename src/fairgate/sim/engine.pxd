cimport cython
from fairgate.core.message cimport Message
from fairgate.core.node cimport Node
from fairgate.sim.latency cimport Latency
from fairgate.sim.metrics cimport Metrics
from fairgate.sim.seats cimport Room, Seat
from fairgate.sim.workload cimport Workload

cdef long long NIL
cdef long long ACQUIRE, CANCEL, DELIVER, PLANNED, RELEASE, TIMER
cdef long long IDLE, WAITING, INSIDE, DOWN

cdef class Engine(Room):
    cdef readonly object make, setup
    cdef public object chooser
    cdef readonly Latency latency
    cdef readonly Workload workload
    cdef readonly Metrics metrics
    cdef public object joins, network, recorder
    cdef readonly list plans, violations
    cdef public list usage
    cdef readonly dict timer_numbers, timer_names, marks
    cdef readonly long long requests, gave_up, timers_set, violation_count, last_progress
    cdef public long long census_every, tokens, coordinators, patience
    cdef readonly long long inside_time
    cdef public bint check, timed, noting, mortal
    cdef readonly bint cut
    cdef readonly long long warm_at, warm_entries, warm_sent
    cdef bint impatient, stuck
    cdef long long most_idle_events, entries_seen, events_seen
    cdef long long hold
    cpdef void begin(self) except *
    @cython.locals(end=cython.longlong, every=cython.longlong, more=bint)
    cpdef bint run(self, long long most) except -1
    cpdef void handle(self, long long kind, long long dst, long long src, Message msg) except *
    cpdef void stray(self, long long dst, Message msg) except *
    cpdef void carry(self, long long dst, Message msg) except *
    @cython.locals(patience=cython.longlong)
    cdef int maybe_give_up(self, long long number, long long request) except -1
    cdef int give_up(self, Seat seat) except -1
    @cython.locals(node=Node)
    cdef int deliver(self, long long dst, long long src, Message msg) except -1
    @cython.locals(node=Node, request=cython.longlong, seat=Seat)
    cdef int acquire(self, long long number, long long asked) except -1
    @cython.locals(node=Node, seat=Seat)
    cpdef void release(self, long long number, long long request) except *
    @cython.locals(seat=Seat)
    cdef int cancel(self, long long number, long long request) except -1
    cdef int timer(self, long long me, long long number) except -1
    cdef int watch(self) except -1
    cdef int vacate(self, Seat seat) except -1
    cdef int over(self, long long number) except -1
    cpdef long long waiting(self)
    cdef bint idle(self) except -1
    @cython.locals(stay=cython.longlong)
    cdef int draw_stay(self, Seat seat) except -1
    @cython.locals(seat=Seat, now=cython.longlong)
    cpdef void granted(self, long long request, long long slot, long long fence) except *
    @cython.locals(number=cython.longlong, seat=Seat)
    cpdef void crash(self, long long me) except *
    @cython.locals(number=cython.longlong, seat=Seat)
    cpdef void reset(self, long long me) except *
    cpdef void lose(self, Message msg) except *
    cpdef void violate(self, str what) except *
    @cython.locals(node=Node, msg=Message, tokens=cython.longlong, coordinators=cython.longlong)
    cpdef void census(self) except *
