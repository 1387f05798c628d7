from fairgate.core.message cimport Message
from fairgate.core.node cimport Node
from fairgate.core.outbox cimport Outbox
from fairgate.live.links cimport Links
from fairgate.recovery.channel cimport Channel

cdef class Letter(Message):
    cdef readonly tuple frame

cdef class Desk(Node):
    cdef public list arrived

cdef class ReliableLinks(Links):
    cdef public object deliver, alarm, log
    cdef public Channel channel
    cdef public long long alarm_at, patience
    cdef public set full, missed
    cdef public dict owed, acked, outsiders

    cpdef send(self, long long peer, tuple frame)
    cpdef keep(self, long long peer, tuple frame)
    cpdef bint take(self, long long peer, tuple frame) except -1
    cpdef send_bare(self, long long peer, tuple frame)
    cpdef owe(self, long long peer, long long number)
    cpdef set_timer(self, long long delay)

cdef class DirectLinks(ReliableLinks):
    cpdef send(self, long long peer, tuple frame)
    cpdef keep(self, long long peer, tuple frame)

cdef class ChannelOutbox(Outbox):
    cdef readonly ReliableLinks links
