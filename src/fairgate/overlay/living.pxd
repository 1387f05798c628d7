cimport cython
from fairgate.core.kbr cimport Keyed
from fairgate.core.keyspace cimport place_of
from fairgate.core.layers cimport Layer
from fairgate.overlay.overlay cimport Found, Lookup, Overlay, Upkeep
from fairgate.overlay.ring cimport Ring
from fairgate.overlay.table cimport Table
from fairgate.overlay.titles cimport Estate, Titled

cdef long long NIL

cdef class Said(Upkeep):
    cdef readonly bint member

@cython.final
cdef class Ping(Said):
    pass

@cython.final
cdef class Pong(Said):
    pass

@cython.final
cdef class Ask(Said):
    pass

@cython.final
cdef class Leaving(Upkeep):
    pass

cdef class Living(Titled):
    cdef readonly unsigned long long place
    cdef public bint joined
    cdef public bint seeking
    cdef public long long contact
    cdef public dict awaited
    cdef public tuple told
    cpdef Table tables(self)
    cpdef void begin(self, Ring ring) except *
    cpdef void upkeep(self) except *
    cpdef void answer(self, long long src) except *
    cpdef void heard(self, long long src) except *
    cpdef void forget(self, long long peer) except *
    cpdef list acquainted(self)
    cpdef void on_news(self, long long src, Upkeep msg) except *
    cpdef void begin_ring(self, Ring ring) except *
    cpdef void start_ticking(self) except *
    cpdef void seek(self) except *
    cpdef void enter_ring(self) except *
    cpdef void pass_to_neighbour(self) except *
    cpdef void on_leaving(self, long long src) except *
    cpdef void probe(self, long long peer, Upkeep msg) except *
    cpdef void on_said(self, long long src, Said m) except *
    cpdef void see_range(self) except *
    cpdef void lost(self, long long peer) except *
    cpdef tuple living_key(self)
    cpdef load_living(self, tuple key)
