"""The kinds of events in the simulator's queue, and what their fields `dst` and `src` mean."""

DELIVER = 0  # a message arrives: dst, src and msg
ACQUIRE = 1  # a seat makes a request: dst is the seat, src the time from which its wait counts
RELEASE = 2  # a seat releases: dst is the seat, src the request
CANCEL = 3  # a seat gives up: dst is the seat, src the request
TIMER = 4  # a timer is due: dst is the node, src the number that the timer was set under
PLANNED = 5  # a planned call, such as a fault or a detector's output: src is its index in the plan
