"""Layers that let a protocol survive lossy networks and crashes. They are pure, like the protocols."""
