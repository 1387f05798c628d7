"""Journals of runs, and what can be made of them: a replay, a picture, a scenario with its expected output."""
