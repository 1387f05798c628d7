cimport cython

cdef enum:
    NIL = -1
    SPREAD = 0x9E3779B1  # an odd number that spreads the nodes over the table

cdef struct Known:
    long long node
    long long number  # NIL: this place of the table is free
    long long slot

cdef inline unsigned long long place(long long r, unsigned long long mask) noexcept:
    return ((<unsigned long long>r * <unsigned long long>SPREAD) >> 16) & mask

@cython.final
cdef class Waiting:
    cdef long long* order  # nodes; those from `front` to `back` are in order
    cdef long long front, back, room
    cdef Known* table  # open addressing, with linear probing
    cdef unsigned long long mask  # the table's size, a power of two, less one
    cdef readonly long long known
    cdef int resize(self, unsigned long long size) except -1
    cdef int make_room(self, long long room) except -1
    cpdef bint add(self, long long r, long long n) except -1
    cpdef bint know(self, long long r, long long n, long long slot) except -1
    cpdef bint remove(self, long long r) noexcept
    cpdef bint forget(self, long long r) except -1
    cpdef tuple nodes(self)
    cpdef Waiting copy(self)
    cpdef tuple key(self)
    cdef int fail(self, long long r) except -1

    cdef inline Known* find(self, long long r) noexcept:
        """The place of the node's request, or the free place where it would be."""
        cdef unsigned long long at = place(r, self.mask)
        while self.table[at].number != NIL and self.table[at].node != r:
            at = (at + 1) & self.mask
        return &self.table[at]

    cpdef inline long long number(self, long long r) noexcept:
        return self.find(r).number

    cpdef inline long long slot(self, long long r) noexcept:
        cdef Known* found = self.find(r)
        return found.slot if found.number != NIL else NIL

    cpdef inline long long promise(self, long long r, long long slot) except -1:
        cdef Known* found = self.find(r)
        if found.number == NIL:
            self.fail(r)
        found.slot = slot
        return found.number

    cpdef inline long long take_first(self) noexcept:
        if self.front == self.back:
            return NIL
        self.front += 1
        return self.order[self.front - 1]
