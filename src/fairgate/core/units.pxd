cpdef object left(long long at, long long now)
cpdef object moment(long long left, long long now)
