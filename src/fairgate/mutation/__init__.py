"""Mutation testing: deletes every statement of a protocol in turn, and checks that each deletion is detected."""
