cimport cython
from fairgate.core.message cimport Message
from fairgate.live.gate cimport LiveGate
from fairgate.live.monitor cimport Monitor
from fairgate.live.ticket cimport Ticket

cdef class Intake:
    cdef object home, local, others
    cdef Monitor lock
    cdef dict gates
    cdef bint stepping
    cdef list let_in
    cpdef on_frame(self, long long peer, tuple frame)
    @cython.locals(gate=LiveGate)
    cpdef on_message(self, str name, long long dst, long long src, Message msg)
    cpdef tell(self, LiveGate gate, Ticket ticket)
    cpdef on_quiet(self)
