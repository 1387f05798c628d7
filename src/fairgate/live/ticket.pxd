# Compiled as it is: it runs for every message of a live peer, or for every entry.
