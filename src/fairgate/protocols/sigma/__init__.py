"""Sigma (SG) and the strawman that it improves on: mutual exclusion by the votes of replicas."""
