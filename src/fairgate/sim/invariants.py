"""The invariants of a run: no token disappears, and no request waits forever.

A violation is recorded, and the run goes on. The number inside, slots and fences are checked at every entry
(core/properties.py). The checks in this module are made every few thousand events: a census of tokens and
coordinators, and a watch for runs in which requests wait but nobody enters.
"""

from bisect import insort

from fairgate.core.message import Message
from fairgate.core.setup import Setup
from fairgate.sim.metrics import Metrics
from fairgate.sim.seats import Seats
from fairgate.sim.workload import Workload

MOST_VIOLATIONS = 100  # whose descriptions are kept; all are counted


def when(violation: str) -> tuple[float, str]:
    """Sort key, by time: gates that take turns report their violations in the order of their turns."""
    return float(violation.rpartition(" at ")[2].removesuffix(" s")), violation


class Invariants(Seats):
    # fmt: off
    __slots__ = (
        "census_every", "check", "coordinators", "cut", "entries_seen", "events_seen", "gave_up", "last_progress",
        "metrics", "most_idle_events", "patience", "requests", "setup", "stuck", "timed", "tokens", "violation_count",
        "violations", "workload"
    )
    # fmt: on

    def __init__(self, setup: Setup, workload: Workload, slots: bool, warmup: int, check: bool, spares: int) -> None:
        Seats.__init__(self, setup, slots, spares)
        self.setup = setup
        self.workload = workload
        self.check = check
        self.metrics = Metrics(self.n * self.resources, warmup)
        self.timed = False  # do the nodes read the clock?
        self.requests = 0
        self.gave_up = 0  # requests that stopped waiting without an entry
        self.tokens = 0  # tokens that should exist: those made, minus those lost with a crash or a message
        self.coordinators = 0  # likewise
        self.census_every = 0  # events between two censuses; 0: never
        self.violations: list[str] = []
        self.violation_count = 0
        self.cut = False  # did the run end at a set time, even if requests still waited?
        self.stuck = False
        self.last_progress = 0
        self.patience = 0  # ns without an entry after which a timed run counts as stuck; 0: no limit
        # Events without an entry after which a run counts as stuck. All nodes may message all others many times.
        self.most_idle_events = max(2_000_000, 50 * self.n * self.n)
        self.entries_seen = 0  # entries when `watch` last ran
        self.events_seen = 0  # events when `watch` last saw a new entry

    # Liveness.

    def waiting(self) -> int:
        """How many requests wait: every request has entered, has given up, or waits."""
        return self.requests - self.metrics.entries - self.gave_up

    def idle(self) -> bool:
        return self.waiting() == 0 and self.inside() == 0 and not self.workload.asking()

    def watch(self) -> None:
        """Stop a run that makes no progress: timers, or messages that circulate, could keep it going forever."""
        if self.timed and self.workload.total_left == 0 and self.idle():
            self.discard()  # the last waiter has crashed
        if self.metrics.entries != self.entries_seen:
            self.entries_seen = self.metrics.entries
            self.events_seen = self.events
        waited_for = self.waiting() > 0 and not self.stuck and self.patience >= 0
        if waited_for and self.patience > 0 and self.now - self.last_progress > self.patience:
            self.give_up_on(f"{self.patience // 10**9} s")
        elif waited_for and self.events - self.events_seen > self.most_idle_events:
            self.give_up_on(f"{self.most_idle_events:,} events")  # the clock stands still if messages take no time

    def give_up_on(self, long: str) -> None:
        self.violate(f"liveness: no entry for {long} while {self.waiting()} waited")
        self.stuck = True
        self.discard()

    def discard(self) -> None:
        """End the run by discarding all events. Tokens in flight go with them, so there is no further census."""
        self.census_every = 0
        self.clear()

    # Tokens and coordinators.

    def lose(self, msg: Message) -> None:
        """Record that a message will never arrive; tokens in it count as lost."""
        self.tokens -= msg.tokens()
        self.coordinators -= msg.coordinators()

    def census(self) -> None:
        """Check the invariants of every node, and that there are as many tokens and coordinators as there should be."""
        tokens = 0
        coordinators = 0
        for me, node in enumerate(self.nodes):
            if not self.is_down(me):
                tokens += node.tokens()
                coordinators += node.coordinators()
                wrong = node.broken()
                if wrong:
                    self.violate(f"{wrong} (node {me})")
        for msg in self.under_way():
            tokens += msg.tokens()
            coordinators += msg.coordinators()
        if tokens != self.tokens:
            self.violate(f"tokens: {tokens} in the system, {self.tokens} expected")
        if coordinators != self.coordinators:
            self.violate(f"coordinator: {coordinators} in the system, {self.coordinators} expected")

    # Violations.

    def stray(self, dst: int, msg: Message) -> None:
        self.violate(f"send: node {self.acting} sent {msg} to {dst}, which is no member")

    def violate(self, what: str) -> None:
        self.violation_count += 1
        violation = f"{what} at {self.now / 1e9:.6f} s"
        kept = len(self.violations)
        if kept < MOST_VIOLATIONS or when(violation) < when(self.violations[kept - 1]):
            insort(self.violations, violation, key=when)
            del self.violations[MOST_VIOLATIONS:]

    def finish(self) -> None:
        """Check the properties one last time, after the last event."""
        if self.check and self.census_every > 0:
            self.census()
        if self.check and self.waiting() > 0 and not self.stuck and not self.cut:
            self.violate(f"liveness: nothing moves any more, and {self.waiting()} wait")
