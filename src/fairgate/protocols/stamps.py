"""Timestamps that order requests fairly: a Lamport clock that also advances with time.

EE sorts queues by Lamport timestamps, to be fair. But a Lamport clock advances only with messages. A node that has
seen few of them has a clock far behind the others, and its requests go first. So here a node's clock advances with
the node's own time as well (a hybrid logical clock). Nodes whose clocks agree stamp their requests in the order in
which they make them. A node whose clock is slow catches up with each stamp that it sees, and keeps the difference.

Only fairness depends on how well clocks agree: the protocols are safe and live with any stamps, as long as those of
one node increase.
"""

from fairgate.core.declare import node
from fairgate.core.kbr import Routed


@node
class Stamped(Routed):
    timed = True
    stamped = True  # see Routed

    ahead: int = 0  # how far this node's Lamport clock is ahead of the time

    def start_clock(self, clock: int) -> None:
        self.ahead = clock - self.now

    def clock(self) -> int:
        return self.now + self.ahead

    def next_stamp(self) -> int:
        """A stamp for a new request, later than all stamps that this node has seen or given."""
        self.ahead += 1
        return self.now + self.ahead

    def see_stamp(self, stamp: int) -> None:
        if stamp - self.now > self.ahead:
            self.ahead = stamp - self.now

    # In a key, the Lamport clock itself: the key is valid on any clock.

    def ahead_key(self) -> int:
        return self.clock()

    def load_ahead(self, clock: int) -> None:
        self.ahead = clock - self.now
