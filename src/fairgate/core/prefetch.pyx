"""How a protocol says what its messages will need, so that it can be loaded into the CPU cache in time.

A simulator knows some messages before their turn. For each, it calls a protocol's function of the type `Prefetch` with
the node, the message and the number of messages that come before it: STEPS first, then one less each time. The function
starts to load memory, with FETCH. It may follow a pointer only if an earlier call has fetched what holds it, and must
change nothing. Only speed depends on it.

The function is in a module that the class names in its attribute `prefetcher`. On import the module calls `offer`.
protocols/non_e2e/prefetch.pyx is an example.
"""

from importlib import import_module

cdef dict OFFERED = {}  # class -> address of the function, or 0


cdef int offer(cls, Prefetch prefetch) except -1:
    """Use this function for nodes of the class and its subclasses."""
    OFFERED[cls] = <size_t>prefetch
    return 0


cdef Prefetch offered_for(cls) except? NULL:
    """The function for nodes of this class, or NULL."""
    if cls not in OFFERED:
        if getattr(cls, "prefetcher", ""):
            import_module(cls.prefetcher)
        found = 0
        for base in reversed(getattr(cls, "__mro__", ())):
            found = OFFERED.get(base, found)
        OFFERED[cls] = found
    return <Prefetch><size_t>OFFERED[cls]
