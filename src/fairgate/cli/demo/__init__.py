"""`fairgate demo`: a gate before your eyes."""
