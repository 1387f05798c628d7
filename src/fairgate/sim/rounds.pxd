cimport cython
from fairgate.sim.sampling cimport sample
from fairgate.sim.engine cimport Engine
from fairgate.sim.stream cimport Stream
from fairgate.sim.workload cimport Workload

cdef class PacedRounds(Workload):
    cdef readonly object pace
    cdef readonly object share
    cdef long long first, every
    cdef readonly long long resources, round_number, next_spare
    cdef set staying
    cdef readonly long long salt
    cdef dict streams
    cdef list requesters, passers_by
    cpdef Engine engine(self)
    cpdef bint round(self, Engine engine) except -1
    @cython.locals(inside=list, held=dict, seats=list, seat=cython.longlong)
    cpdef bint some_leave(self, Engine engine) except -1
    @cython.locals(counts=list, gate=cython.longlong, node=cython.longlong, at=cython.longlong)
    cpdef bint some_ask(self, Engine engine) except -1
    @cython.locals(stream=Stream, drawn=list, taken=set, node=cython.longlong, n=cython.longlong)
    cpdef list draw(self, Engine engine, long long gate, long long count)
    cpdef bint churn(self, Engine engine) except -1
