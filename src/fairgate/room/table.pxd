# The signatures come from the annotations: tools/tables.py

cdef class Change:
    cdef readonly long long now
    cdef readonly object is_stopped
    cdef public list woken
