"""The kinds of events in the queue of the simulator."""

DELIVER = 0  # a message arrives: dst, src, msg
ACQUIRE = 1  # a node asks
RELEASE = 2  # a node leaves: src is its request
CANCEL = 3  # a node gives up: src is its request
TIMER = 4  # a node's timer: src is the number of its setting
PLANNED = 5  # a fault or a detector's word: src is its number in the plan
