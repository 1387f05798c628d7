cpdef long long whole(value) except? -1
cpdef unsigned long long place(value) except? 0
cpdef bint flag(value) except -1
cpdef str text(value)
cpdef tuple sequence(value)
cpdef shaped(value, shape)
cpdef part_of_key(value)
cpdef nested(value, long long depth)
