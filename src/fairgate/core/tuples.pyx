"""The twin of tuples.py. A tuple that only its caller holds, and lets go by calling, is changed as it is."""

from cpython.ref cimport PyObject

cdef extern from "Python.h":
    tuple PyTuple_New(Py_ssize_t n)
    PyObject* PyTuple_GET_ITEM(tuple a, Py_ssize_t at)
    void PyTuple_SET_ITEM(tuple a, Py_ssize_t at, PyObject* item)  # takes a reference over
    void Py_INCREF(PyObject* item)
    void Py_DECREF(PyObject* item)
    Py_ssize_t Py_REFCNT(tuple a)


cpdef tuple replaced(tuple a, Py_ssize_t at, value):
    cdef Py_ssize_t n = len(a), i
    cdef PyObject* item
    cdef tuple b
    if not 0 <= at < n:
        raise IndexError(f"place {at} of a tuple of {n}")
    if Py_REFCNT(a) == 1:  # a caller that is not compiled holds it as well
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
