"""The Non End-to-End protocol of EE, sections IV.B and V.B: partial queues on the paths to the replicas."""
