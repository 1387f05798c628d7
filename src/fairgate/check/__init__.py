"""The exhaustive checker: the third driver of the same nodes."""
