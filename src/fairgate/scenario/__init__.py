"""A network that is driven by hand, one step at a time, and plain-text scenarios that drive it."""
