cimport cython

cdef unsigned long long MASK, STEP, MIX_1, MIX_2

@cython.locals(z=cython.ulonglong)
cpdef unsigned long long place_of(long long ident) noexcept
cpdef unsigned long long clockwise(unsigned long long start, unsigned long long end) noexcept
@cython.locals(step=cython.ulonglong)
cpdef unsigned long long past(unsigned long long place, long long i) noexcept
@cython.locals(there=cython.ulonglong, back=cython.ulonglong)
cpdef unsigned long long apart(unsigned long long a, unsigned long long b) noexcept
cpdef bint is_between(unsigned long long key, unsigned long long start, unsigned long long end) noexcept
@cython.locals(to_a=cython.ulonglong, to_b=cython.ulonglong)
cpdef bint is_closer(unsigned long long key, unsigned long long a, unsigned long long b) noexcept
cpdef unsigned long long middle(unsigned long long before, unsigned long long after) noexcept
@cython.locals(bit=cython.longlong, half=cython.longlong)
cpdef long long top_bit(unsigned long long value) noexcept
@cython.locals(different=cython.ulonglong, below=cython.longlong, count=cython.longlong)
cpdef long long shared_digits(unsigned long long a, unsigned long long b, long long bits) noexcept
cpdef long long digit(unsigned long long place, long long row, long long bits) noexcept
@cython.locals(change=cython.ulonglong)
cpdef unsigned long long with_digit(unsigned long long place, long long row, long long column, long long bits) noexcept
