"""Very many random small simulations of one protocol, and the smallest that fails."""
