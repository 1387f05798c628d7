"""The parts of a fence: an epoch in the high bits, and a count in the low ones."""

FENCE_COUNT_BITS = 32
