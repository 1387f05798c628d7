cdef class Setup:
    cdef readonly tuple members
    cdef readonly long long k, root, epoch
    cdef readonly dict options, shared, holders
