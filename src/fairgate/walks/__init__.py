"""Random walks of small systems: any interleaving can happen, and every property is checked at every step."""
