"""The states of a seat (seats.py)."""

IDLE = 0  # it may ask
WAITING = 1  # it has asked
INSIDE = 2  # it was let in
DOWN = 3  # its node has crashed, or has not joined yet
