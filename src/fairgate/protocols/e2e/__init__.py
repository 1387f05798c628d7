"""The End-to-End protocol of EE, sections IV.A and V.A: the queue travels with the token."""
