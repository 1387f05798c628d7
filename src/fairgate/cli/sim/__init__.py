"""`fairgate sim`: simulate a protocol."""
