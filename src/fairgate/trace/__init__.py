"""Journals of runs: writing, reading, replaying and drawing them."""
