"""The compiled twin of tuples.py. A tuple to which the caller passes the only reference is changed in place."""

from cpython.ref cimport PyObject

from fairgate.core.pool cimport lose_field

cdef extern from "Python.h":
    tuple PyTuple_New(Py_ssize_t n)
    PyObject* PyTuple_GET_ITEM(tuple a, Py_ssize_t at)
    void PyTuple_SET_ITEM(tuple a, Py_ssize_t at, PyObject* item)  # steals a reference to the item
    void Py_INCREF(PyObject* item)
    void Py_DECREF(PyObject* item)
    Py_ssize_t Py_REFCNT(tuple a)


cpdef tuple replaced(tuple a, Py_ssize_t at, value):
    cdef Py_ssize_t n = len(a), i
    cdef PyObject* item
    cdef tuple b
    if not 0 <= at < n:
        raise IndexError(f"index {at} is out of range for a tuple of {n}")
    if Py_REFCNT(a) == 1:  # never true for interpreted callers, which hold a reference of their own
        item = PyTuple_GET_ITEM(a, at)
        Py_INCREF(<PyObject*>value)
        PyTuple_SET_ITEM(a, at, <PyObject*>value)
        Py_DECREF(item)
        return a
    b = PyTuple_New(n)
    for i in range(n):
        item = PyTuple_GET_ITEM(a, i)
        if i == at:
            item = <PyObject*>value
        Py_INCREF(item)
        PyTuple_SET_ITEM(b, i, item)
    return b


cpdef tuple taken(message, tuple a):
    if <PyObject*>message == arriving:
        lose_field(message, a)
    return a
