from cpython.ref cimport PyObject

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

cdef enum:
    STEPS = 5  # a protocol's function is called with `ahead` from STEPS to 2

ctypedef void (*Prefetch)(PyObject* node, PyObject* msg, int ahead) noexcept

cdef int offer(cls, Prefetch prefetch) except -1
cdef Prefetch offered_for(cls) except? NULL
