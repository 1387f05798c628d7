cimport cython
from fairgate.core.properties cimport Occupancy
from fairgate.sim.loop cimport Loop
from fairgate.sim.overtakes cimport Waiters
from fairgate.sim.seat cimport Seat

cdef long long NIL
cdef long long IDLE, INSIDE, DOWN

cdef class Seats(Loop):
    cdef readonly list waiters, occupancies
    cdef readonly long long members, resources
    cdef unsigned char[::1] down
    @cython.locals(seat=Seat, me=cython.longlong, gate=cython.longlong, state=cython.longlong)
    cdef Seat take_seat(self, long long number)
    @cython.locals(number=cython.longlong, seat=Seat)
    cpdef list used_seats(self, long long me)
    cpdef bint is_down(self, long long me) except -1
    @cython.locals(seat=Seat)
    cpdef bint is_idle(self, long long number) except -1
    @cython.locals(seat=Seat)
    cpdef long long inside_at(self, long long number) except? -2
    @cython.locals(occupancy=Occupancy)
    cpdef long long inside(self) except -1
