"""Pools of memory for messages: the twin of pool.py.

A simulation creates and frees messages all the time. Taking the memory of a freed one saves 17 of 440 instructions per
event of Fair-k (docs/notes/simulator-speed.md).
"""

cdef extern from *:
    """
    #define POOL_SIZES 9   /* in steps of 16 bytes */
    #define POOL_MOST 1024 /* freed objects that are kept, per size */

    typedef struct Freed { struct Freed* next; } Freed;

    static Freed* pool_of[POOL_SIZES];
    static int pooled[POOL_SIZES];

    static inline size_t pool_index(PyTypeObject* type) { return ((size_t)type->tp_basicsize + 15) >> 4; }

    static PyObject* pool_alloc(PyTypeObject* type, Py_ssize_t items) {
        size_t i = pool_index(type);
        PyObject* made = (PyObject*)pool_of[i];
        (void)items;
        if (made == NULL) {
            made = (PyObject*)PyObject_Malloc(16 * i);
            if (made == NULL) return PyErr_NoMemory();
        } else {
            pool_of[i] = pool_of[i]->next;
            pooled[i]--;
        }
        for (i = sizeof(PyObject); i < (size_t)type->tp_basicsize; i += sizeof(void*))
            *(void**)((char*)made + i) = NULL;
        return PyObject_Init(made, type);
    }

    static void pool_free(void* freed) {
        size_t i = pool_index(Py_TYPE((PyObject*)freed));
        if (pooled[i] >= POOL_MOST) {
            PyObject_Free(freed);
            return;
        }
        ((Freed*)freed)->next = pool_of[i];
        pool_of[i] = (Freed*)freed;
        pooled[i]++;
    }

    /* Only for static types without subclasses, collector and variable size. */
    static int pool_fits(PyTypeObject* type) {
        unsigned long wrong = Py_TPFLAGS_HEAPTYPE | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE;
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
