cpdef bint pool(kind) except -1
