from cpython.ref cimport PyObject

cdef PyObject* arriving  # the message that a simulator's loop is delivering, and drops afterwards

cpdef tuple replaced(tuple a, Py_ssize_t at, value)
cpdef tuple taken(message, tuple a)
