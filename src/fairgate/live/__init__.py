"""Live peers: the protocols' nodes between real processes. api.py and sync.py are the doors to it."""
