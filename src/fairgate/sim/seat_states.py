"""The states of a seat (seats.py)."""

IDLE = 0  # it may make a request
WAITING = 1  # its request waits
INSIDE = 2  # its request was granted
DOWN = 3  # its node has crashed, or has not joined yet
