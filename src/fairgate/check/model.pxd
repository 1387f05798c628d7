from fairgate.check.tables cimport Table

cdef class Model:
    cdef public object case, setup, steps
    cdef public long long n, k, at_budgets, at_history, at_clock, at_flight
    cdef public bint slots, listens, fifo, timed
    cdef public list mortal, fresh
    cdef public Table statuses, clocks, histories
    cpdef list after(self, tuple state, long long me, tuple outcomes, tuple what)
    cpdef tuple with_fence(self, tuple state, long long slot, long long fence)
    cpdef tuple with_status(self, tuple state, long long me, tuple status)
    cpdef tuple spend(self, tuple state, long long budget)
    cpdef list pending(self, tuple state)
    cpdef list acquire(self, tuple state, long long me, long long left, long long made)
    cpdef list leave(self, tuple state, long long me, str event, long long made)
