"""Key-based routing: the overlays, and the gates that they carry. Pure, like the protocols above them."""
