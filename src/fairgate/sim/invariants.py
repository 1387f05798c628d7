"""What must hold in every run: all tokens are there, nobody waits for ever. A breach is counted, and the run goes on.

How many are inside, their slots and their fences are checked at every entry (core/properties.py); here are the census
of tokens and coordinators and the watch for runs that let nobody in any more, each some thousands of events apart.
"""

from bisect import insort

from fairgate.core.message import Message
from fairgate.core.setup import Setup
from fairgate.sim.metrics import Metrics
from fairgate.sim.seats import Seats
from fairgate.sim.workload import Workload

MOST_VIOLATIONS = 100  # kept in words; all are counted


def when(violation: str) -> tuple[float, str]:
    """To sort them: gates that take turns break rules in the order of their turns."""
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
        self.timed = False  # do its nodes go by the clock?
        self.requests = 0
        self.gave_up = 0  # requests that left the line without coming in
        self.tokens = 0  # that were made, less those lost with a crash or a message
        self.coordinators = 0  # the same
        self.census_every = 0  # in events; 0: never
        self.violations: list[str] = []
        self.violation_count = 0
        self.cut = False  # did it end at a set time, whoever waited then?
        self.stuck = False
        self.last_progress = 0
        self.patience = 0  # ns without an entry after which a timed run counts as stuck; 0: no limit
        self.most_idle_events = max(2_000_000, 50 * self.n * self.n)  # without an entry; all may ask all, many times
        self.entries_seen = 0  # at the last look, and
        self.events_seen = 0  # how many events there had been when it last rose

    # Liveness.

    def waiting(self) -> int:
        """How many wait: who asked has come in since, has given up, or waits."""
        return self.requests - self.metrics.entries - self.gave_up

    def idle(self) -> bool:
        return self.waiting() == 0 and self.inside() == 0 and not self.workload.asking()

    def watch(self) -> None:
        """A system may go on for ever and let nobody in, by its timers or by messages that run in circles."""
        if self.timed and self.workload.total_left == 0 and self.idle():
            self.clear()  # the last one who waited has crashed
        if self.metrics.entries != self.entries_seen:
            self.entries_seen = self.metrics.entries
            self.events_seen = self.events
        waited_for = self.waiting() > 0 and not self.stuck and self.patience >= 0
        if waited_for and self.patience > 0 and self.now - self.last_progress > self.patience:
            self.give_up_on(f"{self.patience // 10**9} s")
        elif waited_for and self.events - self.events_seen > self.most_idle_events:
            self.give_up_on(f"{self.most_idle_events:,} events")  # where messages take no time the clock may stand

    def give_up_on(self, long: str) -> None:
        self.violate(f"liveness: nobody came in for {long} while {self.waiting()} waited")
        self.stuck = True
        self.clear()

    # Tokens and coordinators.

    def lose(self, msg: Message) -> None:
        """A message will never arrive; tokens in it count as lost."""
        self.tokens -= msg.tokens()
        self.coordinators -= msg.coordinators()

    def census(self) -> None:
        """All tokens and coordinators there are, at nodes and under way, are those that were made."""
        tokens = 0
        coordinators = 0
        for me, node in enumerate(self.nodes):
            if not self.is_down(me):
                tokens += node.tokens()
                coordinators += node.coordinators()
        for msg in self.under_way():
            tokens += msg.tokens()
            coordinators += msg.coordinators()
        if tokens != self.tokens:
            self.violate(f"tokens: {tokens} in the system, {self.tokens} are not lost")
        if coordinators != self.coordinators:
            self.violate(f"coordinator: {coordinators} in the system, {self.coordinators} are not lost")

    # Breaches.

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
        """After the last event: the last look at the properties."""
        if self.check and self.census_every > 0:
            self.census()
        if self.check and self.waiting() > 0 and not self.stuck and not self.cut:
            self.violate(f"liveness: nothing moves any more, and {self.waiting()} wait")
