cimport cython
from fairgate.core.keyed cimport Keyed
from fairgate.core.keyspace cimport place_of
from fairgate.core.layers cimport Layer
from fairgate.overlay.overlay cimport Overlay
from fairgate.overlay.ring cimport Ring
from fairgate.overlay.table cimport Table
from fairgate.overlay.titles cimport Titled
from fairgate.overlay.messages cimport Ask, Estate, Found, Leaving, Lookup, Ping, Pong, Said, Upkeep

cdef long long NIL

cdef class Living(Titled):
    cdef readonly unsigned long long place
    cdef public bint joined
    cdef public bint seeking
    cdef public long long contact
    cdef public dict awaited
    cdef public tuple told
    cpdef Table tables(self)
    cpdef bint begin(self, Ring ring) except -1
    cpdef bint upkeep(self) except -1
    cpdef bint answer(self, long long src) except -1
    cpdef bint heard(self, long long src) except -1
    cpdef bint forget(self, long long peer) except -1
    cpdef list acquainted(self)
    cpdef bint on_news(self, long long src, Upkeep msg) except -1
    cpdef bint begin_ring(self, Ring ring) except -1
    cpdef bint start_ticking(self) except -1
    cpdef bint seek(self) except -1
    cpdef bint enter_ring(self) except -1
    cpdef bint pass_to_neighbour(self) except -1
    cpdef bint on_leaving(self, long long src) except -1
    cpdef bint probe(self, long long peer, Upkeep msg) except -1
    cpdef bint on_said(self, long long src, Said m) except -1
    cpdef bint see_range(self) except -1
    cpdef bint lost(self, long long peer) except -1
    cpdef tuple living_key(self)
    cpdef load_living(self, tuple key)
