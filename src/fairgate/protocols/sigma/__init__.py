"""Sigma (SG) and the strawman that it improves on: replicas with one vote each."""
