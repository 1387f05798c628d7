cdef dict MAKERS

cpdef Message decode(key)

cdef class Message:
    cpdef tuple key(self)
    cpdef long long tokens(self)
    cpdef tuple slots(self)
    cpdef long long coordinators(self)
