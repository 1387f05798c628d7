cimport cython

cdef long long NIL

cdef class Ticket:
    cdef public object wake, error, guest
    cdef public str note, state, why
    cdef public long long lease, ident, number, retakes, asked, entered, slot, fence, deadline

    cpdef bint is_over(self)
    cpdef let_in(self, long long now, long long slot, long long fence)
    @cython.locals(ticket=Ticket)
    cpdef Ticket again(self, long long now, str note)
