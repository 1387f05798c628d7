"""The twin of waiting.py in C, which says what each method does.

Short methods are in waiting.pxd, so that the compiler can inline them in other modules.
"""

from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy, memmove

cdef enum:
    LEAST = 8  # initial length of the order and of the table


cdef class Waiting:
    shape = [("i", "i")]

    def __cinit__(self):
        self.make_room(LEAST)
        self.resize(LEAST)

    def __dealloc__(self):
        free(self.order)
        free(self.table)

    # The table of known requests. At least half of it is free.

    cdef int resize(self, unsigned long long size) except -1:
        cdef Known* old = self.table
        cdef unsigned long long used = self.mask + 1 if old != NULL else 0, i
        cdef Known* made = <Known*>malloc(size * sizeof(Known))
        if made == NULL:
            raise MemoryError
        for i in range(size):
            made[i].number = NIL
        self.table = made
        self.mask = size - 1
        for i in range(used):
            if old[i].number != NIL:
                self.find(old[i].node)[0] = old[i]
        free(old)

    cpdef bint know(self, long long r, long long n, long long slot) except -1:
        if n < 0:
            raise ValueError(f"request {n} of node {r} has a negative number")
        cdef Known* found = self.find(r)
        if found.number == NIL:
            self.known += 1
            if 2 * <unsigned long long>self.known > self.mask + 1:
                self.resize(2 * (self.mask + 1))
                found = self.find(r)
        found.node = r
        found.number = n
        found.slot = slot

    cpdef bint forget(self, long long r) except -1:
        cdef Known* found = self.find(r)
        cdef unsigned long long free_at, at, wanted
        if found.number == NIL:
            raise KeyError(r)
        free_at = at = found - self.table
        while True:  # move up what may not be found any more
            at = (at + 1) & self.mask
            if self.table[at].number == NIL:
                break
            wanted = place(self.table[at].node, self.mask)
            if ((at - wanted) & self.mask) >= ((at - free_at) & self.mask):
                self.table[free_at] = self.table[at]
                free_at = at
        self.table[free_at].number = NIL
        self.known -= 1

    cdef int fail(self, long long r) except -1:
        raise KeyError(r)

    # The order.

    cdef int make_room(self, long long room) except -1:
        cdef long long* order = <long long*>realloc(self.order, room * sizeof(long long))
        if order == NULL:
            raise MemoryError
        self.order = order
        self.room = room

    cpdef bint add(self, long long r, long long n) except -1:
        self.know(r, n, NIL)
        if self.back == self.room:
            if 2 * self.front > self.room:
                memmove(self.order, self.order + self.front, (self.back - self.front) * sizeof(long long))
                self.back -= self.front
                self.front = 0
            else:
                self.make_room(2 * self.room)
        self.order[self.back] = r
        self.back += 1

    cpdef bint remove(self, long long r) noexcept:
        cdef long long at
        for at in range(self.front, self.back):
            if self.order[at] == r:
                memmove(self.order + at, self.order + at + 1, (self.back - at - 1) * sizeof(long long))
                self.back -= 1
                break

    # For messages and drivers.

    cpdef tuple nodes(self):
        return tuple([self.order[at] for at in range(self.front, self.back)])

    cpdef Waiting copy(self):
        cdef Waiting made = Waiting.__new__(Waiting)
        made.make_room(self.room)
        memcpy(made.order, self.order + self.front, (self.back - self.front) * sizeof(long long))
        made.back = self.back - self.front
        made.resize(self.mask + 1)
        memcpy(made.table, self.table, (self.mask + 1) * sizeof(Known))
        made.known = self.known
        return made

    cpdef tuple key(self):
        return tuple([(self.order[at], self.find(self.order[at]).number) for at in range(self.front, self.back)])

    def __repr__(self):
        return f"Waiting.from_key({self.key()})"

    @classmethod
    def from_key(cls, key):
        cdef Waiting made = Waiting.__new__(Waiting)
        for r, n in key:
            made.add(r, n)
        return made
