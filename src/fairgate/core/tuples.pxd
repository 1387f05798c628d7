cpdef tuple replaced(tuple a, Py_ssize_t at, value)
