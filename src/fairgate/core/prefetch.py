"""Empty twin of prefetch.pyx: only compiled code can load memory into the CPU cache."""
