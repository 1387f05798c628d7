"""`fairgate demo`: watch a gate at work."""
