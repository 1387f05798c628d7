"""Key-based routing: overlays, and what they carry. Pure, as the protocols above them."""
