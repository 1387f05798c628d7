cdef extern from *:
    ctypedef long long int128 "__int128"  # a sum of times: 2^63 ns are only 292 years, which 5,000 nodes wait in 21 days

cpdef object left(long long at, long long now)
cpdef object moment(long long left, long long now)
