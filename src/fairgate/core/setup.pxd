cdef class Setup:
    cdef object given
    cdef tuple listed
    cdef readonly long long n, k, root, epoch
    cdef readonly dict options, shared, holders
