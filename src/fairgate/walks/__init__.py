"""Random walks of small systems. Any interleaving can occur, and every property is checked after every step."""
