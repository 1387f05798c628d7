"""Network options of the commands that talk to live peers, and the settings they amount to."""
