"""What the messages of Non-End-to-End will need (core/prefetch.pyx).

A GRANTREQ needs what the requester knows about its replica, and a REQUEST the entry that it meets.
"""

from cpython.object cimport Py_TYPE
from cpython.ref cimport PyObject

from fairgate.core.prefetch cimport FETCH, FETCH_2, ITEM, NONE, PLACE, SIZE, WHERE, offer
from fairgate.protocols.non_e2e.messages cimport GrantReq, Request
from fairgate.protocols.non_e2e.protocol cimport NonE2E
from fairgate.protocols.non_e2e.state cimport Entry

cdef enum:  # how many messages ahead each read is started
    LIST = 5
    SLOT = 4
    ENTRY = 3
    QUEUE = 2


cdef inline bint is_a(PyObject* msg, PyObject* kind) noexcept:
    return <PyObject*>Py_TYPE(<object>msg) == kind


cdef void prefetch(PyObject* node, PyObject* msg, int ahead) noexcept:
    cdef PyObject* asks = <PyObject*>(<NonE2E>node).asks
    cdef PyObject* entry
    if is_a(msg, <PyObject*>GrantReq):
        if ahead == LIST:
            FETCH(WHERE(asks))
        elif ahead == SLOT:
            FETCH(PLACE(asks, (<GrantReq>msg).replica))
        elif ahead == ENTRY and SIZE(asks) > 0:
            FETCH_2(ITEM(asks, (<GrantReq>msg).replica))
    elif ahead == ENTRY:
        FETCH_2(<PyObject*>(<NonE2E>node).first)
    elif ahead == QUEUE and is_a(msg, <PyObject*>Request):
        entry = <PyObject*>(<NonE2E>node).first
        if entry != NONE:
            FETCH(WHERE(<PyObject*>(<Entry>entry).queue))


offer(NonE2E, prefetch)
