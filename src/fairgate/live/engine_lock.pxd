from fairgate.net.system cimport Latch

cdef class EngineLock:
    cdef readonly Latch lock, turnstile
    cdef readonly bint wanted
    cpdef take(self)
    cpdef give(self)
