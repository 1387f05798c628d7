"""`fairgate swarm`: many small random simulations of one protocol."""
