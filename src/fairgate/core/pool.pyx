"""Pools of memory for messages: the twin of pool.py.

A simulation creates and frees messages all the time. A freed message goes back to its class's pool as it is, so that
the next one costs a few instructions instead of a hundred (docs/notes/simulator-speed.md). The functions that the build
generates for creating messages (`make_Token`) take from the pool; `Token(...)` in Python allocates.

The collector never learns of a pooled message: messages do not change, so they are in no cycle of references.
"""

cdef extern from *:
    """
    #define POOL_MOST 1024 /* freed messages that are kept, per class */

    static PyObject* pool_alloc(PyTypeObject* type, Py_ssize_t items) {
        PyObject* made;
        (void)items;
        if (type->tp_flags & Py_TPFLAGS_HAVE_GC)
            made = (PyObject*)PyObject_GC_New(PyObject, type);
        else
            made = (PyObject*)PyObject_New(PyObject, type);
        if (made != NULL) /* Cython sets the fields that are objects, and a message's constructor sets all */
            memset(made + 1, 0, (size_t)type->tp_basicsize - sizeof(PyObject));
        return made;
    }

    static void pool_put(PyObject* freed) {
        PyTypeObject* type = Py_TYPE(freed);
        MessagePool* pool = (MessagePool*)type->tp_cache;
        int i;
        if (pool->count < POOL_MOST) {
            POOL_NEXT(freed) = pool->first;
            pool->first = freed;
            pool->count++;
            return;
        }
        for (i = 0; i < pool->fields; i++)
            Py_DECREF(Py_None);
        if (type->tp_flags & Py_TPFLAGS_HAVE_GC)
            PyObject_GC_Del(freed);
        else
            PyObject_Free(freed);
    }

    /* The same for a class with fields that are objects. */
    static void pool_clear_and_put(PyObject* freed) {
        MessagePool* pool = (MessagePool*)Py_TYPE(freed)->tp_cache;
        int i;
        for (i = 0; i < pool->fields; i++) {
            PyObject** field = (PyObject**)((char*)freed + pool->offsets[i]);
            PyObject* value = *field;
            if (value != Py_None) {
                Py_INCREF(Py_None);
                *field = Py_None;
                Py_XDECREF(value);
            }
        }
        pool_put(freed);
    }

    /* Only static types without subclasses and variable size. */
    static int pool_fits(PyTypeObject* type) {
        unsigned long wrong = Py_TPFLAGS_HEAPTYPE | Py_TPFLAGS_BASETYPE;
        return !(type->tp_flags & wrong) && type->tp_itemsize == 0 && type->tp_cache == NULL;
    }

    /* Give the type of this new message a pool. The fields that are objects are None in a new message, all others 0. */
    static int pool_use(PyObject* sample) {
        PyTypeObject* type = Py_TYPE(sample);
        MessagePool* pool = (MessagePool*)PyMem_Calloc(1, sizeof(MessagePool));
        size_t offset = sizeof(PyObject) + sizeof(void*);
        if (pool == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        pool->methods = POOL_NEXT(sample);
        for (; offset + sizeof(void*) <= (size_t)type->tp_basicsize; offset += sizeof(void*)) {
            if (*(PyObject**)((char*)sample + offset) != Py_None) continue;
            if (pool->fields == POOL_FIELDS) {
                PyMem_Free(pool);
                return 0;
            }
            pool->offsets[pool->fields++] = offset;
        }
        if (type->tp_flags & Py_TPFLAGS_HAVE_GC)
            PyObject_GC_UnTrack(sample);
        type->tp_cache = (PyObject*)pool;
        type->tp_alloc = pool_alloc;
        type->tp_dealloc = pool->fields > 0 ? pool_clear_and_put : pool_put;
        return 0;
    }
    """
    bint pool_fits(type kind) noexcept
    int pool_use(object sample) except -1


cpdef bint pool(kind) except -1:
    if pool_fits(kind):
        pool_use(kind.__new__(kind))
