from fairgate.core.message cimport Message
from fairgate.core.node cimport Node
from fairgate.core.outbox cimport Outbox

cdef class Layer(Node):
    cdef public Node upper
    cpdef Outbox door(self)
    cpdef bint send_down(self, long long dst, Message msg) except -1
    cpdef bint on_layer_timer(self, str name) except -1
    cpdef tuple layer_key(self)
    cpdef load_layer(self, tuple key)
    cpdef bint finish_step(self) except -1
    cpdef Node lift(self)

cdef class Through(Outbox):
    cdef public Node owner
    cdef public str prefix

cdef class Down(Through):
    cdef public Layer layer
