"""A network that is moved by hand, one step at a time, and plain-text scenarios that do so."""
