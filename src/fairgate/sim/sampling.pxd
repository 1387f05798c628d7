cimport cython
from fairgate.sim.stream cimport Stream

@cython.locals(size=cython.longlong, moved=dict, drawn=list, i=cython.longlong, j=cython.longlong)
cpdef list sample(Stream stream, population, long long count)
cpdef double lognormal(Stream stream, double mu, double sigma) except? -1.0
