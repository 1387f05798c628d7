"""The states that were seen, in C arrays: the twin of seen.py.

An open-addressed table of numbers (at most half full), the fingerprint of each number, and its parent.
"""

from libc.stdlib cimport free, malloc, realloc


cdef class Seen:
    def __cinit__(self):
        cdef long long i
        self.capacity = 1024
        self.mask = 4095
        self.table = <long long*>malloc(4096 * sizeof(long long))
        self.fingerprints = <long long*>malloc(self.capacity * sizeof(long long))
        self.parents = <int*>malloc(self.capacity * sizeof(int))
        if self.table == NULL or self.fingerprints == NULL or self.parents == NULL:
            raise MemoryError
        for i in range(4096):
            self.table[i] = -1

    def __dealloc__(self):
        free(self.table)
        free(self.fingerprints)
        free(self.parents)

    cpdef long long add(self, long long fingerprint, long long parent) except? -1:
        cdef long long at = (fingerprint ^ (fingerprint >> 29)) & self.mask
        while self.table[at] >= 0:
            if self.fingerprints[self.table[at]] == fingerprint:
                return -1 - self.table[at]
            at = (at + 1) & self.mask
        if self.used == self.capacity:
            self.grow()
            at = (fingerprint ^ (fingerprint >> 29)) & self.mask
            while self.table[at] >= 0:
                at = (at + 1) & self.mask
        self.table[at] = self.used
        self.fingerprints[self.used] = fingerprint
        self.parents[self.used] = <int>parent
        self.used += 1
        return self.used - 1

    cdef int grow(self) except -1:
        cdef long long i, at, slots
        cdef long long* fingerprints = <long long*>realloc(self.fingerprints, 2 * self.capacity * sizeof(long long))
        if fingerprints == NULL:
            raise MemoryError
        self.fingerprints = fingerprints
        cdef int* parents = <int*>realloc(self.parents, 2 * self.capacity * sizeof(int))
        if parents == NULL:
            raise MemoryError
        self.parents = parents
        self.capacity *= 2
        if 2 * self.capacity > self.mask + 1:
            slots = 4 * self.capacity
            free(self.table)
            self.table = <long long*>malloc(slots * sizeof(long long))
            if self.table == NULL:
                raise MemoryError
            self.mask = slots - 1
            for i in range(slots):
                self.table[i] = -1
            for i in range(self.used):
                at = (self.fingerprints[i] ^ (self.fingerprints[i] >> 29)) & self.mask
                while self.table[at] >= 0:
                    at = (at + 1) & self.mask
                self.table[at] = i
        return 0

    def size(self):
        return self.used

    def fingerprint(self, long long number):
        return self.fingerprints[number]

    def parent(self, long long number):
        return self.parents[number]
