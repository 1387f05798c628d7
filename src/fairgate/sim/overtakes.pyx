"""The twin of overtakes.py in C, which explains what is counted. Every operation takes O(log N) steps.

A set of numbers is one bit per number, in words of 64, and a Fenwick tree of the number of bits in each word. The bits
begin at the number `base`. When they are used up, the words before the first waiting number are forgotten, or the space
is doubled. A few bits per request stay in the cache where a linked list does not.
"""

from libc.stdlib cimport free, realloc
from libc.string cimport memmove, memset

cdef enum:
    LEAST = 4  # initial number of words


cdef class Waiters:
    def __init__(self):
        self.base = 1
        self.grow(&self.waiting, LEAST)
        self.grow(&self.dropped, LEAST)
        self.words = LEAST

    def __dealloc__(self):
        free(self.waiting.words)
        free(self.waiting.tree)
        free(self.dropped.words)
        free(self.dropped.tree)

    # Sets of numbers.

    cdef int make_room(self) except -1:
        """Make room for the number after `joined`."""
        cdef long long first = 0
        while first < self.words and self.waiting.words[first] == 0:
            first += 1
        if 2 * first < self.words:  # too few to be worth the move
            self.grow(&self.waiting, 2 * self.words)
            self.grow(&self.dropped, 2 * self.words)
            self.words *= 2
        else:
            self.base += 64 * first
            self.shift(&self.waiting, first)
            self.shift(&self.dropped, first)
        self.count(&self.waiting)
        self.count(&self.dropped)
        return 0

    cdef int grow(self, Marks* marks, long long words) except -1:
        cdef uint64_t* bits = <uint64_t*>realloc(marks.words, words * sizeof(uint64_t))
        cdef int* tree
        if bits == NULL:
            raise MemoryError
        marks.words = bits
        tree = <int*>realloc(marks.tree, (words + 1) * sizeof(int))
        if tree == NULL:
            raise MemoryError
        marks.tree = tree
        memset(&bits[self.words], 0, (words - self.words) * sizeof(uint64_t))
        memset(tree, 0, (words + 1) * sizeof(int))
        return 0

    cdef void shift(self, Marks* marks, long long by) noexcept:
        memmove(marks.words, &marks.words[by], (self.words - by) * sizeof(uint64_t))
        memset(&marks.words[self.words - by], 0, by * sizeof(uint64_t))

    cdef void count(self, Marks* marks) noexcept:
        """Make the tree again."""
        cdef long long i, parent
        marks.count = 0
        memset(marks.tree, 0, (self.words + 1) * sizeof(int))
        for i in range(1, self.words + 1):
            marks.count += bits_in(marks.words[i - 1])
            marks.tree[i] += bits_in(marks.words[i - 1])
            parent = i + (i & -i)
            if parent <= self.words:
                marks.tree[parent] += marks.tree[i]

    # Requests.

    cpdef bint drop(self, long long number) except -1:
        self.mark(&self.waiting, number, -1)
        self.mark(&self.dropped, number, 1)
