cimport cython
from fairgate.sim.sampling cimport sample
from fairgate.sim.engine cimport Engine
from fairgate.sim.workload cimport Workload

cdef class PacedRounds(Workload):
    cdef readonly object pace
    cdef readonly object share
    cdef long long first, every
    cdef readonly long long resources, round_number, next_spare
    cdef set asking_now, staying
    cdef list requesters, passers_by
    cpdef Engine engine(self)
    cpdef bint round(self, Engine engine) except -1
    @cython.locals(inside=list, held=dict, seats=list, seat=cython.longlong)
    cpdef bint some_leave(self, Engine engine) except -1
    @cython.locals(gate=cython.longlong, node=cython.longlong)
    cpdef bint some_ask(self, Engine engine) except -1
    cpdef bint ask(self, Engine engine, long long seat) except -1
    cpdef bint churn(self, Engine engine) except -1
