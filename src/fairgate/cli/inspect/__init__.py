"""`fairgate who`, `top`, `break` and `resize`: inspect the gates of this host or of a cluster, and change them."""
