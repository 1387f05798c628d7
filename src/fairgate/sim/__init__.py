"""The simulator: virtual time, workloads, faults and measurements."""
