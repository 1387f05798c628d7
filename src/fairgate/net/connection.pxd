# Compiled without type declarations. It runs for every message of a live peer.
