cdef class Monitor:
    cdef readonly object lock, turnstile
    cdef readonly bint wanted
    cpdef take(self)
    cpdef give(self)
