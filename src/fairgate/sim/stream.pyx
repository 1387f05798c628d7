"""The twin of stream.py in C: Python's own generator, the Mersenne Twister, started from the state of a seeded Random.

Drawing through Random would create Python integers: 280 instructions per number, a twentieth of a run's.
"""

from random import Random

cimport cython
from libc.stdint cimport uint32_t

cdef enum:  # a parameter of MT19937
    SHIFT = 397


cdef inline uint32_t twisted(uint32_t here, uint32_t following, uint32_t far) noexcept:
    cdef uint32_t mixed = (here & 0x80000000U) | (following & 0x7FFFFFFFU)
    return far ^ (mixed >> 1) ^ (0x9908B0DFU if mixed & 1 else 0)


@cython.final
cdef class Stream:
    def __init__(self, seed):
        cdef int i
        state = Random(seed).getstate()[1]  # the words, then the number of those that were drawn
        for i in range(WORDS):
            self.words[i] = state[i]
        self.used = state[WORDS]

    cdef void refill(self) noexcept:
        """Compute the next words, each from three of the last ones."""
        cdef uint32_t* words = self.words
        cdef int i
        for i in range(WORDS - SHIFT):
            words[i] = twisted(words[i], words[i + 1], words[i + SHIFT])
        for i in range(WORDS - SHIFT, WORDS - 1):
            words[i] = twisted(words[i], words[i + 1], words[i + SHIFT - WORDS])
        words[WORDS - 1] = twisted(words[WORDS - 1], words[0], words[SHIFT - 1])
        self.used = 0

    cpdef long long below(self, long long n) except -1:
        return <long long>(self.unit() * n)
