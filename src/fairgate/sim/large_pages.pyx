"""Large pages for the nodes of a large system.

With 100,000 nodes, every message reaches a node that was last used long ago. Not only its memory is in no cache, but
neither is the translation of its address: the processor remembers those of a few megabytes of ordinary pages (4 KiB).
Linux can put 2 MiB of memory that are in use together on one large page. It is asked to do so for blocks that are
almost full of nodes and seats. Only speed depends on it: where the system does not know the request, nothing happens.
"""

from cpython.ref cimport PyObject
from libc.stdint cimport uintptr_t
from libc.stdlib cimport calloc, free

from fairgate.sim.loop cimport Place

cdef extern from *:
    """
    #if defined(__linux__)
    #include <sys/mman.h>
    #ifndef MADV_COLLAPSE
    #define MADV_COLLAPSE 25 /* since Linux 6.1 */
    #endif
    #define COLLAPSE(start, size) ((void)madvise((void*)(start), (size), MADV_COLLAPSE))
    #else
    #define COLLAPSE(start, size) ((void)(start))
    #endif
    #define SIZE_OF(object) (Py_TYPE(object)->tp_basicsize)
    """
    void COLLAPSE(uintptr_t start, size_t size) noexcept
    long long SIZE_OF(PyObject* object) noexcept

cdef enum:
    BITS = 21
    BLOCK = 1 << BITS  # size of a large page
    MOST = 1 << 16  # blocks: all of the memory that is looked at


cdef inline uintptr_t block_of(PyObject* object) noexcept:
    return <uintptr_t>object >> BITS


cdef void put_on_large_pages(Place* places, long long n) noexcept:
    """Put blocks that are almost full of these nodes and seats on large pages.

    A large page takes memory for all of its block, used or not. A quarter is left for the heads of objects.
    """
    cdef uintptr_t first = block_of(places[0].node), last = first, block
    cdef long long i
    cdef long long* filled
    for i in range(n):
        first = min(first, block_of(places[i].node), block_of(places[i].seat))
        last = max(last, block_of(places[i].node), block_of(places[i].seat))
    if last - first >= MOST:
        return
    filled = <long long*>calloc(last - first + 1, sizeof(long long))
    if filled == NULL:
        return
    for i in range(n):
        filled[block_of(places[i].node) - first] += SIZE_OF(places[i].node)
        filled[block_of(places[i].seat) - first] += SIZE_OF(places[i].seat)
    for block in range(last - first + 1):
        if 4 * filled[block] >= 3 * BLOCK:
            COLLAPSE((first + block) << BITS, BLOCK)
    free(filled)
