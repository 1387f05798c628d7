cpdef long long checked_int(value) except? -1
cpdef unsigned long long checked_place(value) except? 0
cpdef bint checked_bool(value) except -1
cpdef str checked_str(value)
cpdef tuple sequence(value)
cpdef checked_shape(value, shape)
cpdef part_of_key(value)
cpdef nested(value, long long depth)
