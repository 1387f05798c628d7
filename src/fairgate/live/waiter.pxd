from fairgate.net.reader cimport Reader
from fairgate.net.system cimport heed

cdef class ThreadWaiter:
    cdef readonly Reader reader
    cdef readonly object news

    cpdef wake(self)
    cpdef wait(self, what, timeout)
    cpdef sleep(self, what, timeout)
