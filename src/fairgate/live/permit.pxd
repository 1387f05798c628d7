cdef class BasePermit:
    cdef readonly object engine, gate, ticket
