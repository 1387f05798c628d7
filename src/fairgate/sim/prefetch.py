"""Empty twin of prefetch.pyx, which prefetches into the CPU cache: only compiled code can do that."""
