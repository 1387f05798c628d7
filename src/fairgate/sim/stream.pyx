"""The twin of stream.py in C: Python's own generator, the Mersenne Twister, started from the state of a seeded Random.

Drawing through Random would create Python integers: 280 instructions per number, a twentieth of a run's.
"""

from random import Random

cimport cython
from libc.math cimport log
from libc.stdint cimport uint32_t

cdef enum:  # parameters of MT19937
    WORDS = 624
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

    cdef inline uint32_t word(self) noexcept:
        cdef uint32_t drawn
        if self.used == WORDS:
            self.refill()
        drawn = self.words[self.used]
        self.used += 1
        drawn ^= drawn >> 11
        drawn ^= (drawn << 7) & 0x9D2C5680U
        drawn ^= (drawn << 15) & 0xEFC60000U
        return drawn ^ (drawn >> 18)

    cpdef double unit(self) except -1.0:
        cdef double high = self.word() >> 5, low = self.word() >> 6
        return (high * 67108864.0 + low) * (1.0 / 9007199254740992.0)  # 27 and 26 bits, as Python does

    cpdef long long below(self, long long n) except -1:
        return <long long>(self.unit() * n)

    cpdef long long exponential(self, double mean) except -1:
        return <long long>(-mean * log(1.0 - self.unit()))
