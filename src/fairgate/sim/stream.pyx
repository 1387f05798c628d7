"""The twin of stream.py in C.

Python's Random makes a float from two 32-bit words of the Mersenne Twister: 27 bits of the first and 26 of the second.
The same words, drawn in blocks, give the same floats.
"""

from random import Random

cimport cython
from libc.math cimport log
from libc.stdint cimport uint32_t
from libc.string cimport memcpy


@cython.final
cdef class Stream:
    def __init__(self, seed):
        self.rng = Random(seed)
        self.used = 256

    cdef int refill(self) except -1:
        cdef bytes drawn = self.rng.getrandbits(64 * 256).to_bytes(8 * 256, "little")
        cdef uint32_t words[512]
        cdef int i
        memcpy(words, <char*>drawn, 8 * 256)
        for i in range(256):
            self.block[i] = ((words[2 * i] >> 5) * 67108864.0 + (words[2 * i + 1] >> 6)) * (1.0 / 9007199254740992.0)
        self.used = 0
        return 0

    cpdef double unit(self) except -1.0:
        if self.used == 256:
            self.refill()
        self.used += 1
        return self.block[self.used - 1]

    cpdef long long below(self, long long n) except -1:
        return <long long>(self.unit() * n)

    cpdef long long exponential(self, double mean) except -1:
        return <long long>(-mean * log(1.0 - self.unit()))
