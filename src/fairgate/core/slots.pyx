"""The twin of slots.py in C, which says what each method does: a doubly linked list in two arrays, by slot.

Methods that every step calls are in slots.pxd, so that the compiler can inline them in other modules.
"""

from libc.stdlib cimport free, realloc
from libc.string cimport memcpy

cdef enum:
    MOST = 1 << 20
    LEAST = 7  # slots that there is room for at first


cdef class Slots:
    shape = ["i"]

    def __cinit__(self):
        self.grow(LEAST)

    def __dealloc__(self):
        free(self.after)
        free(self.before)

    cdef int grow(self, long long least) except -1:
        """Make room for slots below `least`."""
        cdef int* after = <int*>realloc(self.after, (least + 1) * sizeof(int))
        if after == NULL:
            raise MemoryError
        self.after = after
        cdef int* before = <int*>realloc(self.before, (least + 1) * sizeof(int))
        if before == NULL:
            raise MemoryError
        self.before = before
        if self.room == 0:
            after[0] = before[0] = 0
        for i in range(self.room + 1, <int>least + 1):
            after[i] = -1
        self.room = <int>least

    cdef int grow_for(self, long long slot) except -1:
        if not 0 <= slot < MOST:
            raise ValueError(f"slot {slot} is not between 0 and {MOST - 1:,}")
        self.grow(max(slot + 1, min(2 * self.room, MOST)))

    cdef int fail(self) except -1:
        raise IndexError("no slot is in the set")

    cpdef Slots copy(self):
        cdef Slots made = Slots.__new__(Slots)
        made.grow(self.room)
        memcpy(made.after, self.after, (self.room + 1) * sizeof(int))
        memcpy(made.before, self.before, (self.room + 1) * sizeof(int))
        made.count = self.count
        return made

    cpdef tuple key(self):
        cdef list slots = []
        cdef int at = self.after[0]
        while at != 0:
            slots.append(at - 1)
            at = self.after[at]
        return tuple(slots)

    def __repr__(self):
        return f"Slots.from_key({self.key()})"

    @classmethod
    def from_key(cls, key):
        cdef Slots made = Slots.__new__(Slots)
        for slot in key:
            made.add(slot)
        return made
