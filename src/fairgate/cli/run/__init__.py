"""`fairgate run`: a command inside of a gate."""
