cimport cython
from fairgate.core.message cimport Message
from fairgate.core.outbox cimport Outbox
from fairgate.live.counts cimport Counts
from fairgate.live.ticket cimport Ticket
from fairgate.live.uplink cimport Uplink
from fairgate.recovery.census cimport Dated
from fairgate.recovery.regenerate cimport Regenerate

cdef long long NIL

cpdef long long view_of(Message msg) except? -1

cdef class LiveGate:
    cdef readonly object owner, make, regenerate
    cdef readonly Uplink uplink
    cdef readonly str name, protocol
    cdef public object record, early
    cdef readonly long long k
    cdef readonly dict options
    cdef object __weakref__
    cdef public long long seats, fewest, requests, retakes, renewed, used
    cdef public dict nodes, tickets
    cdef public list free, withheld
    cdef public set idents, unseated
    cdef public bint standing, leads, pinned, resting
    cdef readonly bint asks_again
    cdef public Ticket broken, kept, retaken
    cdef public str closed
    cdef readonly Counts counts

    @cython.locals(ident=cython.longlong)
    cpdef acquire(self, Ticket ticket)
    cpdef begin(self, Ticket ticket, long long ident)
    @cython.locals(node=Regenerate, inside=cython.bint)
    cpdef again(self, Ticket old, Ticket ticket)
    @cython.locals(old=Ticket, ticket=Ticket)
    cpdef Ticket retake(self, str note)
    cpdef release(self, Ticket ticket)
    cpdef end(self, Ticket ticket, str was)
    @cython.locals(node=Regenerate)
    cpdef leave(self, Ticket ticket)
    @cython.locals(ticket=Ticket)
    cpdef release_kept(self)
    @cython.locals(ticket=Ticket)
    cpdef granted(self, long long ident, long long request, long long slot, long long fence)
    cpdef let_in(self, Ticket ticket)
    cpdef on_message(self, long long dst, long long src, Message msg)
    @cython.locals(host=cython.longlong)
    cpdef send(self, long long src, long long dst, Message msg)
    @cython.locals(node=Regenerate)
    cpdef Regenerate node(self, long long ident)

cdef class SeatOutbox(Outbox):
    cdef readonly LiveGate gate
    cdef readonly long long ident
