"""The set of states seen so far, in C arrays: the compiled twin of seen.py.

An open-addressed table of state numbers (at most two thirds full), and the fingerprint and the parent of each number:
18 bytes per state when the table is full, 24 when it has just grown.
"""

from libc.stdlib cimport free, malloc, realloc


cdef class Seen:
    def __cinit__(self):
        cdef long long i
        self.capacity = 1024
        self.mask = 2047
        self.table = <int*>malloc(2048 * sizeof(int))
        self.fingerprints = <long long*>malloc(self.capacity * sizeof(long long))
        self.parents = <int*>malloc(self.capacity * sizeof(int))
        if self.table == NULL or self.fingerprints == NULL or self.parents == NULL:
            raise MemoryError
        for i in range(2048):
            self.table[i] = -1

    def __dealloc__(self):
        free(self.table)
        free(self.fingerprints)
        free(self.parents)

    cdef long long place(self, long long fingerprint) noexcept:
        """The index in the table where the fingerprint is, or would be."""
        cdef long long at = (fingerprint ^ (fingerprint >> 29)) & self.mask
        while self.table[at] >= 0 and self.fingerprints[self.table[at]] != fingerprint:
            at = (at + 1) & self.mask
        return at

    cpdef bint rest(self) except -1:
        free(self.table)
        self.table = NULL

    cpdef long long find(self, long long fingerprint) except? -2:
        if self.table == NULL:
            self.lay_out(self.mask + 1)
        return self.table[self.place(fingerprint)]

    cpdef long long add(self, long long fingerprint, long long parent) except? -1:
        cdef long long at
        if self.table == NULL:
            self.lay_out(self.mask + 1)
        at = self.place(fingerprint)
        if self.table[at] >= 0:
            return -1 - self.table[at]
        if self.used == self.capacity:
            self.grow()
        if 3 * self.used >= 2 * self.mask:
            self.lay_out(2 * (self.mask + 1))
            at = self.place(fingerprint)
        self.table[at] = <int>self.used
        self.fingerprints[self.used] = fingerprint
        self.parents[self.used] = <int>parent
        self.used += 1
        return self.used - 1

    cdef bint grow(self) except -1:
        if self.capacity > 1 << 29:
            raise MemoryError("too many states: at most 2**30 can be numbered")
        cdef long long* fingerprints = <long long*>realloc(self.fingerprints, 2 * self.capacity * sizeof(long long))
        if fingerprints == NULL:
            raise MemoryError
        self.fingerprints = fingerprints
        cdef int* parents = <int*>realloc(self.parents, 2 * self.capacity * sizeof(int))
        if parents == NULL:
            raise MemoryError
        self.parents = parents
        self.capacity *= 2
        return 0

    cdef int lay_out(self, long long slots) except -1:
        """Rebuild the table with this many slots, from the fingerprints."""
        cdef long long i
        free(self.table)
        self.table = <int*>malloc(slots * sizeof(int))
        if self.table == NULL:
            raise MemoryError
        self.mask = slots - 1
        for i in range(slots):
            self.table[i] = -1
        for i in range(self.used):
            self.table[self.place(self.fingerprints[i])] = <int>i
        return 0

    def size(self):
        return self.used

    def fingerprint(self, long long number):
        return self.fingerprints[number]

    def parent(self, long long number):
        return self.parents[number]
