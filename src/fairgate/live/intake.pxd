cimport cython
from fairgate.core.message cimport Message
from fairgate.live.gate cimport LiveGate
from fairgate.live.monitor cimport Monitor

cdef class Intake:
    cdef object home, local, others
    cdef Monitor lock
    cdef dict gates
    cpdef on_frame(self, long long peer, tuple frame)
    @cython.locals(gate=LiveGate)
    cpdef on_message(self, str name, long long dst, long long src, Message msg)
