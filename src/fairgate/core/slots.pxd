cimport cython

@cython.final
cdef class Slots:
    cdef int* after  # slot + 1 -> the next slot + 1; 0 is before the first and after the last; -1: not in the set
    cdef int* before
    cdef int room  # for slots below this number
    cdef readonly int count
    cdef int grow(self, long long least) except -1
    cdef int grow_for(self, long long slot) except -1
    cdef int fail(self) except -1
    cpdef Slots copy(self)
    cpdef tuple key(self)

    cpdef inline bint has(self, long long slot) noexcept:
        return 0 <= slot < self.room and self.after[slot + 1] >= 0

    cpdef inline long long first(self) except -1:
        if self.count == 0:
            self.fail()
        return self.after[0] - 1

    cpdef inline bint add(self, long long slot) except -1:
        cdef int at = <int>slot + 1, last
        if not 0 <= slot < self.room:
            self.grow_for(slot)
        if self.after[at] < 0:
            last = self.before[0]
            self.after[last] = self.before[0] = at
            self.before[at] = last
            self.after[at] = 0
            self.count += 1

    cpdef inline bint remove(self, long long slot) noexcept:
        cdef int at = <int>slot + 1
        if 0 <= slot < self.room and self.after[at] >= 0:
            self.after[self.before[at]] = self.after[at]
            self.before[self.after[at]] = self.before[at]
            self.after[at] = -1
            self.count -= 1

    cpdef inline long long take_first(self) except -1:
        cdef long long slot = self.first()
        self.remove(slot)
        return slot

    cpdef inline long long take_last(self) except -1:
        if self.count == 0:
            self.fail()
        cdef long long slot = self.before[0] - 1
        self.remove(slot)
        return slot
