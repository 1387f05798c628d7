"""Pools of memory for messages: the twin of pool.py.

A simulation creates and frees messages all the time. Taking the memory of a freed one saves 17 of 440 instructions per
event of Fair-k (docs/notes/simulator-speed.md).

The collector never learns of a pooled message: messages do not change, so they are in no cycle of references. Objects
of a type that the collector knows have a header. It stays with the memory, so the two sorts have pools of their own.
"""

cdef extern from *:
    """
    #define POOL_SIZES 9   /* in steps of 16 bytes */
    #define POOL_MOST 1024 /* freed objects that are kept, per size */

    typedef struct Freed { struct Freed* next; } Freed;
    typedef struct { Freed* first; int count; } Pool;

    static Pool pools[2][POOL_SIZES]; /* of types without and with a header for the collector */

    static inline size_t pool_index(PyTypeObject* type) { return ((size_t)type->tp_basicsize + 15) >> 4; }

    static inline Pool* pool_for(PyTypeObject* type) {
        return &pools[(type->tp_flags & Py_TPFLAGS_HAVE_GC) != 0][pool_index(type)];
    }

    /* The memory is not zeroed: Cython sets the fields that are objects, and a message's constructor sets all. */
    static PyObject* pool_alloc(PyTypeObject* type, Py_ssize_t items) {
        Pool* pool = pool_for(type);
        PyObject* made = (PyObject*)pool->first;
        (void)items;
        if (made == NULL) {
            if (type->tp_flags & Py_TPFLAGS_HAVE_GC)
                made = (PyObject*)PyObject_GC_New(PyObject, type);
            else
                made = (PyObject*)PyObject_Malloc(16 * pool_index(type));
            if (made == NULL) return PyErr_NoMemory();
        } else {
            pool->first = pool->first->next;
            pool->count--;
        }
        return PyObject_Init(made, type);
    }

    static void pool_free(void* freed) {
        PyTypeObject* type = Py_TYPE((PyObject*)freed);
        Pool* pool = pool_for(type);
        if (pool->count >= POOL_MOST) {
            if (type->tp_flags & Py_TPFLAGS_HAVE_GC)
                PyObject_GC_Del(freed);
            else
                PyObject_Free(freed);
            return;
        }
        ((Freed*)freed)->next = pool->first;
        pool->first = (Freed*)freed;
        pool->count++;
    }

    /* Only for static types without subclasses and variable size. */
    static int pool_fits(PyTypeObject* type) {
        unsigned long wrong = Py_TPFLAGS_HEAPTYPE | Py_TPFLAGS_BASETYPE;
        return !(type->tp_flags & wrong) && type->tp_itemsize == 0 && pool_index(type) < POOL_SIZES;
    }

    static void pool_use(PyTypeObject* type) {
        type->tp_alloc = pool_alloc;
        type->tp_free = pool_free;
    }
    """
    bint pool_fits(type kind) noexcept
    void pool_use(type kind) noexcept


cpdef bint pool(kind) except -1:
    if pool_fits(kind):
        pool_use(kind)
