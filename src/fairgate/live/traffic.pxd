cimport cython
from fairgate.core.message cimport Message
from fairgate.live.gate cimport LiveGate
from fairgate.live.links cimport Links
from fairgate.live.engine_lock cimport EngineLock
from fairgate.live.ticket cimport Ticket
from fairgate.live.uplink cimport Uplink
from fairgate.net.system cimport clock

cdef class Traffic(Uplink):
    cdef object owner, others, let_in
    cdef readonly object local
    cdef readonly EngineLock lock
    cdef public Links links
    cdef dict gates
    cdef bint stepping
    cdef public unsigned long long quiet_thread
    cpdef on_frame(self, long long peer, tuple frame)
    @cython.locals(gate=LiveGate)
    cpdef bint on_frame_elsewhere(self, long long peer, tuple frame) except -1
    cpdef on_message(self, long long peer, LiveGate gate, long long dst, long long src, Message msg)
    cpdef on_quiet(self)
    cdef wake(self, LiveGate gate, Ticket ticket)
