cimport cython
from fairgate.live.engine_lock cimport EngineLock
from fairgate.live.gate cimport LiveGate
from fairgate.live.ticket cimport Ticket
from fairgate.live.traffic cimport Traffic
from fairgate.room cimport calls, guestbook
from fairgate.room.changes cimport Changes
from fairgate.room.guestbook cimport Guestbook
from fairgate.room.notes cimport read_note, read_text, write_text
from fairgate.room.table cimport Change, Step
from fairgate.room.words cimport Words

cdef class Asked:
    cdef public GuestRoom room
    cdef public LiveGate gate
    cdef public long long number
    cdef public Ticket ticket
    cpdef bint wake(self) except -1

cdef class Look(Step):
    cdef public GuestRoom room
    cdef public Asked answer
    cdef public long long end
    cdef public list wishes
    cpdef bint run(self, Change change) except -1

cdef class GuestRoom:
    cdef public object host, engine, loop, bell, timer, retry, answers, over
    cdef public Traffic traffic
    cdef public str name, folder, cluster
    cdef public Changes desk
    cdef public Guestbook book
    cdef public dict requests, refusals, lines
    cdef public set called, suspects, looked_at, left_inside, idle
    cdef public bint crowded, rescuing, running, closed
    cdef public unsigned long long thread
    cdef public long long waiting_since, timer_at, cluster_number, quiet
    cdef public LiveGate described, latest, reopening
    cdef public tuple latest_wish

    cpdef answered(self, Asked asked)
    @cython.locals(began=cython.longlong)
    cpdef run(self)
    @cython.locals(answer=Asked, look=Look)
    cpdef turn(self)
    @cython.locals(m=Words, asked=Asked, called=set, new=list)
    cpdef step(self, Look look, Change change)
    @cython.locals(m=Words)
    cpdef wish(self, long long number, long long seat)
    @cython.locals(m=Words)
    cpdef check_cluster(self)
    @cython.locals(m=Words, book=Guestbook, ticket=Ticket, number=cython.longlong)
    cpdef answer(self, Change change, Asked asked)
    @cython.locals(asked=Asked)
    cpdef is_over(self, long long number)
    @cython.locals(again=Asked, ended=list, gate=LiveGate)
    cpdef tell_cluster(self, list wishes)
    @cython.locals(asked=Asked, traffic=Traffic)
    cpdef in_step(self, list new)
    cpdef release(self, Asked asked)
    @cython.locals(gate=LiveGate, asked=Asked)
    cpdef Asked opened(self, wish)
    @cython.locals(gate=LiveGate)
    cpdef LiveGate usual(self, wish)
    @cython.locals(gate=LiveGate)
    cpdef LiveGate gate(self, wish)
    cpdef ask(self, Asked asked, Asked old)
    cpdef watch(self)
    cpdef look_later(self, long long when)
