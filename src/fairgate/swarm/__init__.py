"""Swarms: many small random simulations of one protocol, and shrinking those that fail."""
