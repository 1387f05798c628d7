cimport cython
from fairgate.core.message cimport Message
from fairgate.core.node cimport Node
from fairgate.core.properties cimport Occupancy
from fairgate.core.units cimport int128
from fairgate.sim.invariants cimport Invariants
from fairgate.sim.latency cimport Latency
from fairgate.sim.overtakes cimport Waiters
from fairgate.sim.seat cimport Seat

cdef long long NEVER, NIL
cdef long long ACQUIRE, CANCEL, DELIVER, PLANNED, RELEASE, TIMER
cdef long long IDLE, WAITING, INSIDE, DOWN

cdef class Engine(Invariants):
    cdef readonly object make
    cdef public object chooser
    cdef readonly Latency latency
    cdef public object joins, network, recorder, timeline
    cdef readonly list plans
    cdef public list clocks
    cdef readonly dict timer_numbers, timer_names, marks
    cdef readonly long long timers_set
    cdef readonly int128 inside_time
    cdef public bint noting, mortal
    cdef readonly long long warm_at, warm_entries, warm_sent
    cdef bint impatient
    cdef long long hold
    cpdef bint begin(self) except -1
    @cython.locals(end=cython.longlong, every=cython.longlong, more=bint)
    cpdef bint run(self, long long most) except -1
    cpdef bint handle(self, long long kind, long long dst, long long src, Message msg) except -1
    cpdef bint carry(self, long long dst, Message msg) except -1
    @cython.final
    @cython.locals(patience=cython.longlong)
    cdef int maybe_give_up(self, long long number, long long request) except -1
    @cython.final
    @cython.locals(waiters=Waiters)
    cdef int give_up(self, Seat seat) except -1
    @cython.final
    @cython.locals(node=Node)
    cdef bint deliver(self, long long dst, long long src, Message msg) except -1
    @cython.final
    @cython.locals(node=Node, request=cython.longlong, seat=Seat, waiters=Waiters)
    cdef int acquire(self, long long number, long long asked) except -1
    @cython.locals(node=Node, seat=Seat)
    cpdef bint release(self, long long number, long long request) except -1
    @cython.locals(seat=Seat)
    cdef int cancel(self, long long number, long long request) except -1
    cdef int timer(self, long long me, long long number) except -1
    cdef long long reading(self, long long me) except? -1
    @cython.final
    @cython.locals(occupancy=Occupancy)
    cdef int vacate(self, Seat seat) except -1
    @cython.final
    cdef bint over(self, long long number) except -1
    @cython.final
    cdef Seat seat_of(self, long long request)
    @cython.final
    @cython.locals(stay=cython.longlong)
    cdef int draw_stay(self, Seat seat) except -1
    @cython.locals(seat=Seat, now=cython.longlong, occupancy=Occupancy, waiters=Waiters)
    cpdef bint granted(self, long long request, long long slot, long long fence) except -1
    @cython.locals(number=cython.longlong, seat=Seat)
    cpdef bint crash(self, long long me) except -1
    @cython.locals(number=cython.longlong, seat=Seat)
    cpdef bint reset(self, long long me) except -1
