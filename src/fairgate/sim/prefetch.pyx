"""Prefetches what the next messages will need into the CPU cache while others are delivered.

On a DHT, a message reaches one of many gates of a node that has not been touched for a long time. A chain of reads
leads to the state of that gate, and each read would have to wait for memory. So each is started some messages ahead, in
time for the next one in the chain. Only speed depends on it, and a useless prefetch does no harm. The pure Python twin
is empty.
"""

from cpython.object cimport Py_TYPE
from cpython.ref cimport PyObject

from fairgate.core.node cimport Node
from fairgate.overlay.gates cimport Gates
from fairgate.overlay.overlay cimport Overlay
from fairgate.overlay.settled cimport Settled
from fairgate.protocols.non_e2e.protocol cimport NonE2E
from fairgate.protocols.non_e2e.messages cimport GrantReq, Request
from fairgate.protocols.non_e2e.state cimport Entry
from fairgate.sim.loop cimport Event, Lane

cdef extern from *:
    """
    #define FETCH(at) __builtin_prefetch((const char*)(at))
    #define FETCH_2(at) (FETCH(at), FETCH((const char*)(at) + 64))
    #define FETCH_3(at) (FETCH_2(at), FETCH((const char*)(at) + 128))
    #define FETCH_4(at) (FETCH_3(at), FETCH((const char*)(at) + 192))
    #define PLACE(list, i) (&PyList_GET_ITEM(list, i))
    #define WHERE(list) (&((PyListObject*)(list))->ob_item)
    """
    # Fetch 1 to 4 cache lines of 64 bytes. An object may begin anywhere in a line: fetch one more than its size needs.
    void FETCH(void* at) noexcept
    void FETCH_2(void* at) noexcept
    void FETCH_3(void* at) noexcept
    void FETCH_4(void* at) noexcept
    void* PLACE(PyObject* list, long long i) noexcept
    PyObject*** WHERE(PyObject* list) noexcept  # the field of a list that points to its array of items
    PyObject* ITEM "PyList_GET_ITEM"(PyObject* list, long long i) noexcept
    long long SIZE "PyList_GET_SIZE"(PyObject* list) noexcept
    PyObject* NONE "Py_None"

cdef enum:  # how many messages ahead each read is started; the first, of the message itself, is FAR ahead
    NODE = 10
    LAYERS = 9
    DOORS = 8
    STATE = 6
    LIST = 5
    SLOT = 4
    ENTRY = 3
    QUEUE = 2


cdef int what_to_fetch(Node node) noexcept:
    """What a message to this node will need, as far as its stack is known.

    NOTHING: unknown. OF_GATES: gates. OF_SETTLED: gates and a settled table. OF_NON_E2E: those, with state of NonE2E.
    """
    if not isinstance(node, Overlay) or not isinstance((<Overlay>node).rider, Gates):
        return NOTHING
    if not isinstance(node, Settled):
        return OF_GATES
    return OF_NON_E2E if (<Gates>(<Overlay>node).rider).make is NonE2E else OF_SETTLED


cdef PyObject** gates_of(Node node) noexcept:
    """The array of the gates' protocol nodes, by gate. It never moves, because the list never changes its length."""
    return WHERE(<PyObject*>(<Gates>(<Overlay>node).rider).gates)[0]


cdef inline Event* ahead(Lane* lane, long long count) noexcept:
    return &lane.ring[(lane.first + count) & lane.mask]


cdef inline PyObject* state_for(PyObject*** gates, Event* event) noexcept:
    return gates[event.dst][event.kind] if event.kind >= 0 else NONE


cdef inline bint is_a(PyObject* msg, PyObject* kind) noexcept:
    return <PyObject*>Py_TYPE(<object>msg) == kind


cdef void fetch_ahead(int what, PyObject* nodes, PyObject*** gates, Lane* lane) noexcept:
    cdef Event* event = ahead(lane, FAR)
    cdef PyObject* node
    FETCH(event + 8)
    FETCH_2(event.msg)
    FETCH(PLACE(nodes, event.dst))
    FETCH(&gates[event.dst])
    event = ahead(lane, NODE)
    FETCH_3(ITEM(nodes, event.dst))
    if event.kind >= 0:
        FETCH(&gates[event.dst][event.kind])
    event = ahead(lane, LAYERS)
    node = ITEM(nodes, event.dst)
    if what != OF_GATES:
        FETCH_3(<PyObject*>(<Settled>node).table)
    if event.kind >= 0:
        FETCH_3(<PyObject*>(<Overlay>node).rider)
    event = ahead(lane, DOORS)
    if event.kind >= 0:
        node = <PyObject*>(<Overlay>ITEM(nodes, event.dst)).rider
        FETCH_2(<PyObject*>(<Gates>node).door)
        FETCH_2(<PyObject*>(<Gates>node).out)
    FETCH_4(state_for(gates, ahead(lane, STATE)))
    if what == OF_NON_E2E:
        fetch_non_e2e(gates, lane)


cdef inline void fetch_non_e2e(PyObject*** gates, Lane* lane) noexcept:
    """Prefetch for a GRANTREQ what the requester knows about its replica, and for a REQUEST the entry that it meets."""
    cdef Event* event = ahead(lane, LIST)
    cdef PyObject* state = state_for(gates, event)
    cdef PyObject* found
    if state != NONE and is_a(event.msg, <PyObject*>GrantReq):
        FETCH(WHERE(<PyObject*>(<NonE2E>state).asks))
    event = ahead(lane, SLOT)
    state = state_for(gates, event)
    if state != NONE and is_a(event.msg, <PyObject*>GrantReq):
        FETCH(PLACE(<PyObject*>(<NonE2E>state).asks, (<GrantReq>event.msg).replica))
    event = ahead(lane, ENTRY)
    state = state_for(gates, event)
    if state != NONE and is_a(event.msg, <PyObject*>GrantReq):
        found = <PyObject*>(<NonE2E>state).asks
        if SIZE(found) > 0:
            FETCH_2(ITEM(found, (<GrantReq>event.msg).replica))
    elif state != NONE:
        FETCH_2(<PyObject*>(<NonE2E>state).first)
    event = ahead(lane, QUEUE)
    state = state_for(gates, event)
    if state != NONE and is_a(event.msg, <PyObject*>Request):
        found = <PyObject*>(<NonE2E>state).first
        if found != NONE:
            FETCH(WHERE(<PyObject*>(<Entry>found).queue))
