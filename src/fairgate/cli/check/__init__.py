"""`fairgate check`: explore every run of a small system."""
