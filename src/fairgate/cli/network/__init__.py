"""The options of commands that talk to live peers, and what they select."""
