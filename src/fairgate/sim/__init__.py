"""The simulator: virtual time, faults, workloads, and what a run measures."""
