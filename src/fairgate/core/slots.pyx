"""The twin of slots.py in C, which says what each method does: a doubly linked list in two arrays, by slot."""

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

    cpdef bint has(self, long long slot) noexcept:
        return 0 <= slot < self.room and self.after[slot + 1] >= 0

    cpdef long long first(self) except -1:
        if self.count == 0:
            raise IndexError("no slot is in the set")
        return self.after[0] - 1

    cpdef bint add(self, long long slot) except -1:
        cdef int at = <int>slot + 1, last
        if not 0 <= slot < self.room:
            if not 0 <= slot < MOST:
                raise ValueError(f"slot {slot} is not between 0 and {MOST - 1:,}")
            self.grow(max(slot + 1, min(2 * self.room, MOST)))
        if self.after[at] >= 0:
            return 0
        last = self.before[0]
        self.after[last] = self.before[0] = at
        self.before[at] = last
        self.after[at] = 0
        self.count += 1

    cpdef bint remove(self, long long slot) noexcept:
        cdef int at = <int>slot + 1
        if 0 <= slot < self.room and self.after[at] >= 0:
            self.after[self.before[at]] = self.after[at]
            self.before[self.after[at]] = self.before[at]
            self.after[at] = -1
            self.count -= 1

    cpdef long long take_first(self) except -1:
        cdef long long slot = self.first()
        self.remove(slot)
        return slot

    cpdef long long take_last(self) except -1:
        if self.count == 0:
            raise IndexError("no slot is in the set")
        cdef long long slot = self.before[0] - 1
        self.remove(slot)
        return slot

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
