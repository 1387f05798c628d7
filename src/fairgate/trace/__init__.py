"""Journals of runs, and what can be made of them: a replay and a picture."""
