cdef extern from *:
    """
    #ifndef FAIRGATE_POOL
    #define FAIRGATE_POOL
    #define POOL_FIELDS 8

    /* Freed messages of one class. They stay as `tp_new` made them, except that the field after the head of the object,
       Cython's table of methods, is the pointer to the next one. */
    typedef struct {
        PyObject* first;
        int count;
        void* methods;
        int fields;               /* how many fields are objects; those of a freed message are None */
        size_t offsets[POOL_FIELDS];
    } MessagePool;

    #define POOL_NEXT(message) (*(void**)((PyObject*)(message) + 1))

    /* A new message. A pooled class keeps its pool in `tp_cache`, a field that Python no longer uses. */
    static CYTHON_INLINE PyObject* pool_take(PyObject* kind) {
        PyTypeObject* type = (PyTypeObject*)kind;
        MessagePool* pool = (MessagePool*)type->tp_cache;
        PyObject* made;
        PyObject* nothing;
        if (pool != NULL && pool->first != NULL) {
            made = pool->first;
            pool->first = (PyObject*)POOL_NEXT(made);
            pool->count--;
            POOL_NEXT(made) = pool->methods;
            Py_SET_REFCNT(made, 1);
            return made;
        }
        nothing = PyTuple_New(0);
        if (nothing == NULL) return NULL;
        made = type->tp_new(type, nothing, NULL);
        Py_DECREF(nothing);
        return made;
    }

    /* Let a message that only the caller refers to, and that has a pool, lose this field. */
    static CYTHON_INLINE void pool_lose(PyObject* message, PyObject* value) {
        MessagePool* pool = (MessagePool*)Py_TYPE(message)->tp_cache;
        int i;
        if (pool == NULL || Py_REFCNT(message) != 1) return;
        for (i = 0; i < pool->fields; i++) {
            PyObject** field = (PyObject**)((char*)message + pool->offsets[i]);
            if (*field == value) {
                Py_INCREF(Py_None);
                *field = Py_None;
                Py_DECREF(value);
                return;
            }
        }
    }
    #endif
    """
    void lose_field "pool_lose"(object message, object value) noexcept
    object pooled "pool_take"(object kind)

cpdef bint pool(kind) except -1
