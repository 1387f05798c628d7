"""Prefetches what the next messages will need into the CPU cache while others are delivered.

On a DHT, a message reaches one of many gates of a node that has not been touched for a long time. A chain of reads
leads to the state of that gate, and each read would have to wait for memory. So each is started some messages ahead, in
time for the next one in the chain. Only speed depends on it, and a useless prefetch does no harm. The pure Python twin
is empty.

This module knows overlays and gates. What is behind the state of a gate, its protocol says (core/prefetch.pyx).
"""

from cpython.ref cimport PyObject

from fairgate.core.node cimport Node
from fairgate.core.prefetch cimport FETCH, FETCH_2, FETCH_3, FETCH_4, ITEM, NONE, PLACE, STEPS, WHERE, offered_for
from fairgate.overlay.gates cimport Gates
from fairgate.overlay.overlay cimport Overlay
from fairgate.overlay.settled cimport Settled
from fairgate.sim.loop cimport Event, Lane

cdef enum:  # how many messages ahead each read is started; the first, of the message itself, is FAR ahead
    NODE = 10
    LAYERS = 9
    DOORS = 8
    STATE = 6


cdef int what_to_fetch(Node node) noexcept:
    """What a message to this node will need, as far as its stack is known.

    NOTHING: unknown. OF_GATES: gates. OF_SETTLED: gates and a settled table.
    """
    if not isinstance(node, Overlay) or not isinstance((<Overlay>node).rider, Gates):
        return NOTHING
    return OF_SETTLED if isinstance(node, Settled) else OF_GATES


cdef Prefetch prefetch_of(Node node) except? NULL:
    """What the protocol of this node's gates offers, or NULL."""
    return offered_for((<Gates>(<Overlay>node).rider).make)


cdef PyObject** gates_of(Node node) noexcept:
    """The array of the gates' protocol nodes, by gate. It never moves, because the list never changes its length."""
    return WHERE(<PyObject*>(<Gates>(<Overlay>node).rider).gates)[0]


cdef inline Event* ahead(Lane* lane, long long count) noexcept:
    return &lane.ring[(lane.first + count) & lane.mask]


cdef inline PyObject* state_for(PyObject*** gates, Event* event) noexcept:
    return gates[event.dst][event.kind] if event.kind >= 0 else NONE


cdef void fetch_ahead(int what, Prefetch of_protocol, PyObject* nodes, PyObject*** gates, Lane* lane) noexcept:
    cdef Event* event = ahead(lane, FAR)
    cdef PyObject* node
    cdef int step
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
    if of_protocol != NULL:
        for step in range(STEPS, 1, -1):
            event = ahead(lane, step)
            node = state_for(gates, event)
            if node != NONE:
                of_protocol(node, event.msg, step)
