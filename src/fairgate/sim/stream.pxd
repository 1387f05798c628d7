cimport cython
from libc.math cimport log
from libc.stdint cimport uint32_t

cdef enum:
    WORDS = 624  # a parameter of MT19937

cdef extern from *:
    const long long NEVER "(1LL << 62)"  # as in core/units.py

@cython.final
cdef class Stream:
    cdef uint32_t words[WORDS]
    cdef int used  # words drawn since the last refill
    cdef void refill(self) noexcept
    cpdef long long below(self, long long n) except -1

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

    cpdef inline double unit(self) except -1.0:
        cdef double high = self.word() >> 5, low = self.word() >> 6
        return (high * 67108864.0 + low) * (1.0 / 9007199254740992.0)  # 27 and 26 bits, as Python does

    cpdef inline long long exponential(self, double mean) except -1:
        cdef double drawn = -mean * log(1.0 - self.unit())
        return <long long>drawn if drawn < NEVER else NEVER
