cimport cython
from fairgate.live.gate cimport LiveGate
from fairgate.live.ticket cimport Ticket
from fairgate.room.changes cimport Changes
from fairgate.room.guestbook cimport Guestbook, News

cdef class Asked:
    cdef public GuestRoom room
    cdef public LiveGate gate
    cdef public long long number
    cdef public Ticket ticket
    cpdef bint wake(self) except -1

cdef class Outcome:
    cdef public News news
    cdef public Asked granted
    cdef public long long let_in, end
    cdef public dict wants, about

cdef class GuestRoom:
    cdef public object host, engine, loop, bell, timer, answers
    cdef public str name, folder
    cdef public Changes desk
    cdef public Guestbook book
    cdef public dict requests, refusals, lines
    cdef public set called, suspects, looked_at, left_inside, idle
    cdef public bint renewed, running, closed
    cdef public unsigned long long thread
    cdef public long long waiting_since, timer_at
    cdef public LiveGate described

    cpdef answered(self, Asked asked)
    @cython.locals(answer=Asked, outcome=Outcome)
    cpdef run(self)
    @cython.locals(asked=Asked, granted=Asked, news=News)
    cpdef tell_cluster(self, Outcome outcome)
    @cython.locals(gate=LiveGate, asked=Asked)
    cpdef Asked opened(self, long long number, Outcome outcome)
    cpdef ask(self, Asked asked)
    cpdef watch(self)
    cpdef look_later(self, long long when)
