cimport cython

@cython.locals(i=cython.longlong, one=cython.longlong, other=cython.longlong)
cpdef bint is_before(tuple a, tuple b) except -1
@cython.locals(i=cython.longlong, one=cython.longlong, other=cython.longlong)
cpdef bint is_same(tuple a, tuple b) except -1
@cython.locals(low=cython.longlong, high=cython.longlong, middle=cython.longlong)
cpdef long long place_in(list queue, tuple asked) except -1
@cython.locals(at=cython.longlong)
cpdef bint put(list queue, tuple asked) except -1
