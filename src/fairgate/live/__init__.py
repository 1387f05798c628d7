"""Live peers: runs the protocols' nodes in real processes. api.py and sync.py are the public entry points."""
