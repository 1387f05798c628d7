"""`fairgate swarm`: very many random small simulations."""
