from fairgate.sim.loop cimport Place

cdef void put_on_large_pages(Place* places, long long n) noexcept
