cimport cython
from fairgate.check.steps cimport StepOutcome, Steps
from fairgate.check.interning cimport Interned

cdef long long NIL
cdef str IDLE, WAITING, INSIDE, DOWN
cdef unsigned long long MASK

cdef class Model:
    cdef public object case, setup
    cdef public Steps steps
    cdef public long long n, k, at_budgets, at_history, at_clock, at_flight
    cdef public bint slots, listens, fifo, timed, again
    cdef public list mortal, fresh, things, ticks
    cdef public Interned table
    @cython.locals(found=list)
    cpdef list successors(self, tuple state)
    @cython.locals(
        before=cython.longlong, order=cython.longlong, place=cython.longlong, message=cython.longlong,
        dst=cython.longlong, rest=list,
    )
    cpdef bint deliveries(self, list found, tuple state) except -1
    @cython.locals(me=cython.longlong, number=cython.longlong, left=cython.longlong, made=cython.longlong, phase=str)
    cpdef bint inputs(self, list found, tuple state) except -1
    @cython.locals(asking=list)
    cpdef bint ask(self, list found, tuple state, long long me, long long left, long long made) except -1
    @cython.locals(asking=list)
    cpdef bint ask_again(self, list found, tuple state, long long me, long long left, long long made) except -1
    cpdef bint leave(self, list found, list state, long long me, str event) except -1
    @cython.locals(outcome=StepOutcome, changed=list, broken=str, wrong=str)
    cpdef bint after(self, list found, list state, long long me, tuple outcomes, tuple what) except -1
    cpdef long long order(self, long long message) except *
    @cython.locals(dst=cython.longlong, number=cython.longlong, order=cython.longlong, place=cython.longlong)
    cpdef bint send(self, list state, long long message) except -1
    @cython.locals(
        other=cython.longlong, number=cython.longlong, slot=cython.longlong, fence=cython.longlong, status=tuple,
        taken=list,
    )
    cpdef str enter(self, list state, long long me, tuple permit)
    cpdef str raise_fence(self, list state, long long slot, long long fence)
    cpdef long long status(self, long long me, long long left, long long made, str phase, long long slot) except *
    cpdef long long become(self, list state, long long me, str phase) except *
    @cython.locals(mask=cython.longlong, me=cython.longlong, number=cython.longlong)
    cpdef long long waiting(self, tuple state) except *
    @cython.locals(least=cython.longlong, total=cython.longlong)
    cpdef long long fingerprint(self, tuple state) except *
    @cython.locals(
        total='unsigned long long', more='unsigned long long', at=cython.longlong, before=cython.longlong,
        order=cython.longlong, weight='unsigned long long', message=cython.longlong, number=cython.longlong,
    )
    cpdef long long sum_of(self, tuple state, list hashes) except *
