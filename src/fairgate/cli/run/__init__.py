"""`fairgate run`: run a command inside a gate."""
