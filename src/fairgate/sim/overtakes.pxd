cimport cython
from libc.stdint cimport uint64_t

cdef extern from *:
    """
    #ifndef FAIRGATE_BITS
    #define FAIRGATE_BITS
    /* The number of bits, without a call of the compiler's library: not every processor has an instruction for it. */
    static CYTHON_INLINE int bits_in(uint64_t word) {
        word -= (word >> 1) & 0x5555555555555555ULL;
        word = (word & 0x3333333333333333ULL) + ((word >> 2) & 0x3333333333333333ULL);
        word = (word + (word >> 4)) & 0x0F0F0F0F0F0F0F0FULL;
        return (int)((word * 0x0101010101010101ULL) >> 56);
    }
    #endif
    """
    int bits_in(uint64_t word) noexcept

cdef struct Marks:  # a set of numbers
    uint64_t* words  # one bit per number
    int* tree  # a Fenwick tree, from index 1: counts of the bits in the words
    long long count

@cython.final
cdef class Waiters:
    cdef Marks waiting
    cdef Marks dropped
    cdef long long base  # the number of the first bit
    cdef long long words  # how many
    cdef readonly long long joined, overtakes, max_displacement, max_overtaken
    cdef int make_room(self) except -1
    cdef int grow(self, Marks* marks, long long words) except -1
    cdef void shift(self, Marks* marks, long long by) noexcept
    cdef void count(self, Marks* marks) noexcept
    cpdef bint drop(self, long long number) except -1

    cdef inline void mark(self, Marks* marks, long long number, int by) noexcept:
        """Add a number that is not in the set (by = 1), or remove one that is (by = -1)."""
        cdef long long at = number - self.base, i = (at >> 6) + 1
        marks.words[at >> 6] ^= <uint64_t>1 << (at & 63)
        marks.count += by
        while i <= self.words:
            marks.tree[i] += by
            i += i & -i

    cdef inline long long before(self, Marks* marks, long long number) noexcept:
        """How many numbers in the set are smaller than this one?"""
        cdef long long at = number - self.base, i = at >> 6
        cdef long long found = bits_in(marks.words[i] & ((<uint64_t>1 << (at & 63)) - 1))
        while i > 0:
            found += marks.tree[i]
            i &= i - 1
        return found

    cpdef inline long long join(self) except -1:
        if self.joined + 1 - self.base == 64 * self.words:
            self.make_room()
        self.joined += 1
        self.mark(&self.waiting, self.joined, 1)
        return self.joined

    cpdef inline bint enter(self, long long number) except -1:
        cdef long long displacement = self.before(&self.waiting, number)
        cdef long long overtaken
        self.mark(&self.waiting, number, -1)
        self.overtakes += displacement
        if displacement > self.max_displacement:
            self.max_displacement = displacement
        overtaken = self.joined - number - (self.waiting.count - displacement)
        if self.dropped.count > 0:
            overtaken -= self.dropped.count - self.before(&self.dropped, number)
        if overtaken > self.max_overtaken:
            self.max_overtaken = overtaken
