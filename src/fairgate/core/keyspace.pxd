cimport cython

cdef unsigned long long MASK, STEP, MIX_1, MIX_2

@cython.locals(z=cython.ulonglong)
cpdef unsigned long long place_of(long long ident) noexcept
cpdef unsigned long long clockwise(unsigned long long start, unsigned long long end) noexcept
@cython.locals(there=cython.ulonglong, back=cython.ulonglong)
cpdef unsigned long long apart(unsigned long long a, unsigned long long b) noexcept
cpdef bint is_between(unsigned long long key, unsigned long long start, unsigned long long end) noexcept
