"""The simulator: one queue of events, one atomic step an event, the properties checked all along.

The engine is the outbox of all its nodes: `acting` says whose step it is. Node ids are 0..n-1. Nothing
here draws a random number of its own: latency, workload, choices and faults each have their own seeded
stream, so that one of them can be changed without disturbing the others.
"""

from collections.abc import Callable
from typing import Any, Protocol

from fairgate.core.choose import Chooser
from fairgate.core.ids import NIL
from fairgate.core.inputs import CALLS
from fairgate.core.layers import MakeNode
from fairgate.core.message import Message
from fairgate.core.node import Node
from fairgate.core.numbers import numbers
from fairgate.core.properties import Occupancy
from fairgate.core.setup import Setup
from fairgate.sim.events import ACQUIRE, CANCEL, DELIVER, PLANNED, RELEASE, TIMER
from fairgate.sim.latency import Latency
from fairgate.sim.line import Line
from fairgate.sim.loop import EXITS, HEAP, Loop
from fairgate.sim.metrics import Metrics
from fairgate.sim.workload import Workload

Plan = Callable[["Engine"], None]

IDLE, WAITING, INSIDE, DOWN = 0, 1, 2, 3
MOST_VIOLATIONS = 100  # kept in words; all are counted


class Network(Protocol):
    """What a faulty network does with a message (sim/faults.py)."""

    def carry(self, engine: "Engine", src: int, dst: int, msg: Message) -> None: ...


class Recorder(Protocol):
    """What writes a journal (sim/record.py): makes the step itself and notes what came of it."""

    def step(self, now: int, node: Node, event: str, *arguments: Any) -> None: ...


class Engine(Loop):
    def __init__(
        self,
        make: MakeNode,
        setup: Setup,
        latency: Latency,
        workload: Workload,
        chooser: Chooser,
        slots: bool = False,
        warmup: int = 0,
        check: bool = True,
    ) -> None:
        n = len(setup.members)
        Loop.__init__(self, n)
        self.make = make
        self.setup = setup
        self.latency = latency
        self.workload = workload
        self.chooser = chooser
        self.check = check
        self.line = Line(n)
        self.metrics = Metrics(n, warmup)
        self.occupancy = Occupancy(setup.k, slots)
        self.network: Network | None = None
        self.recorder: Recorder | None = None
        self.state = numbers(n, IDLE)
        self.request = numbers(n, NIL)
        self.asked = numbers(n)
        self.slot = numbers(n, NIL)
        self.requests = 0
        self.inside_time = 0  # ns that permits were held, added up
        self.plans: list[Plan] = []
        self.timer_numbers: dict[tuple[int, str], int] = {}
        self.timer_names: dict[int, str] = {}
        self.timers_set = 0
        self.noting = False  # are marks wanted?
        self.marks: dict[str, int] = {}
        self.violations: list[str] = []
        self.violation_count = 0
        self.usage: list[tuple[int, int]] | None = None  # (when, how many inside), if somebody asks
        for me in range(n):
            self.place(me, make(me, setup, self))
        self.timed: bool = self.nodes[0].timed
        self.census_every = 0  # in events; 0: never
        self.impatient = False
        self.hold = -1  # ns inside, if all stay as long; -1: drawn each time
        self.tokens = 0
        self.coordinators = 0
        self.last_progress = 0
        self.stuck = False
        self.most_idle_events = max(2_000_000, 50 * n * n)  # without an entry; all may ask all, many times over
        self.entries_seen = 0  # at the last look, and
        self.events_seen = 0  # how many events there had been when it last rose
        self.patience = 0  # ns without an entry after which a timed run counts as stuck; 0: no limit

    # The run.

    def begin(self) -> None:
        """Start all nodes and plan the first requests."""
        self.plain = self.recorder is None and self.network is None and not self.timed and not self.plans
        self.fixed = self.latency.fixed if self.network is None else NIL
        self.impatient = self.workload.give_up_share > 0.0
        self.hold = -1 if self.workload.hold_random else self.workload.hold
        self.tokens = sum([node.tokens() for node in self.nodes])
        self.coordinators = sum([node.coordinators() for node in self.nodes])
        for me in range(len(self.nodes)):
            self.call(me, "start")
        self.workload.loop = self
        self.workload.begin(self.now)

    def run(self, most: int) -> bool:
        """Up to `most` events; False when there is nothing left to do."""
        end = self.events + most
        every = self.census_every if self.census_every > 0 else most
        while self.events < end:
            more = Loop.run(self, min(end - self.events, every))
            if self.census_every > 0:
                self.census()
            self.watch()
            if not more:
                return False
        return True

    def handle(self, kind: int, dst: int, src: int, msg: Message | None) -> None:
        if msg is not None:
            self.deliver(dst, src, msg)
        elif kind == ACQUIRE:
            self.acquire(dst, src)
        elif kind == RELEASE:
            self.release(dst, src)
        elif kind == TIMER:
            self.timer(dst, src)
        elif kind == CANCEL:
            self.cancel(dst, src)
        else:
            self.plans[src](self)

    # One kind of event each.

    def deliver(self, dst: int, src: int, msg: Message) -> None:
        if self.state[dst] == DOWN:
            self.lose(msg)
        else:
            self.received[dst] += 1
            self.call(dst, "message", src, msg)

    def acquire(self, me: int, asked: int) -> None:
        self.workload.asked(me)
        if self.state[me] == IDLE:  # else it crashed after this was planned
            self.requests += 1
            self.request[me] = self.requests
            self.asked[me] = asked
            self.state[me] = WAITING
            self.line.join(me)
            if self.impatient:
                self.maybe_give_up(me)
            if self.plain:
                node = self.nodes[me]
                self.acting = me
                node.on_acquire(self.requests)
            else:
                self.call(me, "acquire", self.requests)

    def maybe_give_up(self, me: int) -> None:
        patience = self.workload.give_up_after()
        if patience >= 0:
            self.push(self.now + patience, CANCEL, me, self.requests, None, HEAP)

    def release(self, me: int, request: int) -> None:
        if self.state[me] == INSIDE and self.request[me] == request:  # else lost or crashed since
            self.vacate(me)
            if self.plain:
                node = self.nodes[me]
                self.acting = me
                node.on_release(request)
            else:
                self.call(me, "release", request)
            self.over(me)

    def cancel(self, me: int, request: int) -> None:
        if self.state[me] == WAITING and self.request[me] == request:  # else it is inside, or over
            self.metrics.cancelled += 1
            self.line.drop(me)
            self.state[me] = IDLE
            self.request[me] = NIL
            self.call(me, "cancel", request)
            self.over(me)

    def timer(self, me: int, number: int) -> None:
        name = self.timer_names.pop(number)
        if self.timer_numbers.get((me, name)) == number:  # else set again, or cancelled
            del self.timer_numbers[me, name]
            self.call(me, "timer", name)
            self.watch()

    def watch(self) -> None:
        """A system may go on for ever and let nobody in, by its timers or by messages that run in circles."""
        if self.timed and self.workload.total_left == 0 and self.idle():
            self.clear()  # the last one who waited has crashed
        if self.metrics.entries != self.entries_seen:
            self.entries_seen = self.metrics.entries
            self.events_seen = self.events
        waited_for = self.line.length > 0 and not self.stuck
        if waited_for and self.patience > 0 and self.now - self.last_progress > self.patience:
            self.give_up_on(f"{self.patience // 10**9} s")
        elif waited_for and self.events - self.events_seen > self.most_idle_events:
            self.give_up_on(
                f"{self.most_idle_events:,} events"
            )  # where messages take no time the clock may stand still

    def give_up_on(self, long: str) -> None:
        self.violate(f"liveness: nobody came in for {long} while {self.line.length} waited")
        self.stuck = True
        self.clear()

    def call(self, me: int, event: str, *arguments: Any) -> None:
        """A step of one node. Where all is plain, the bulk of all steps goes a shorter way."""
        node = self.nodes[me]
        self.acting = me
        node.now = self.now
        if self.recorder is not None:
            self.recorder.step(self.now, node, event, *arguments)
        else:
            getattr(node, CALLS[event])(*arguments)

    # Who is inside.

    def vacate(self, me: int) -> None:
        """This node is no longer inside."""
        self.inside_time += self.now
        self.occupancy.leave(me, self.slot[me])
        self.state[me] = IDLE
        self.request[me] = NIL
        if self.usage is not None:
            self.usage.append((self.now, self.occupancy.inside))

    def over(self, me: int) -> None:
        """A request ended: on with the next."""
        self.workload.done(me, self.now)
        if self.timed and self.workload.total_left == 0 and self.idle():
            self.clear()  # timers may go on for ever

    def idle(self) -> bool:
        return self.line.length == 0 and self.occupancy.inside == 0 and self.workload.asking == 0

    # What the nodes say.

    def stray(self, dst: int, msg: Message) -> None:
        self.violate(f"send: node {self.acting} sent {msg} to {dst}, which is no member")

    def carry(self, dst: int, msg: Message) -> None:
        if self.network is not None:
            self.network.carry(self, self.acting, dst, msg)
        else:
            self.push(self.now + self.latency.delay(self.acting, dst), DELIVER, dst, self.acting, msg, HEAP)

    def granted(self, request: int, slot: int, fence: int) -> None:
        me = self.acting
        if self.state[me] != WAITING or self.request[me] != request:
            self.violate(f"grant: node {me} was granted request {request}, which does not wait")
            return
        self.inside_time -= self.now
        broken = self.occupancy.enter(me, slot, fence)
        if self.check and broken:
            self.violate(broken)
        self.state[me] = INSIDE
        self.slot[me] = slot
        self.line.enter(me)
        self.metrics.entered(me, self.now - self.asked[me])
        self.last_progress = self.now
        if self.usage is not None:
            self.usage.append((self.now, self.occupancy.inside))
        self.push(self.now + (self.hold if self.hold >= 0 else self.workload.stay()), RELEASE, me, request, None, EXITS)

    def lost(self, request: int, why: str) -> None:
        me = self.acting
        if self.state[me] == INSIDE and self.request[me] == request:
            self.metrics.lost += 1
            self.vacate(me)
            self.over(me)

    def set_timer(self, name: str, delay: int) -> None:
        self.timers_set += 1
        self.timer_numbers[self.acting, name] = self.timers_set
        self.timer_names[self.timers_set] = name
        self.push(self.now + delay, TIMER, self.acting, self.timers_set, None, HEAP)

    def cancel_timer(self, name: str) -> None:
        self.timer_numbers.pop((self.acting, name), None)

    def note(self, mark: str) -> None:
        if self.noting:
            self.marks[mark] = self.marks.get(mark, 0) + 1

    def choose(self, n: int) -> int:
        return self.chooser(n)

    # Faults (planned in sim/faults.py).

    def plan(self, at: int, what: Plan) -> None:
        self.plans.append(what)
        self.push(at, PLANNED, 0, len(self.plans) - 1, None, HEAP)

    def is_down(self, me: int) -> bool:
        return self.state[me] == DOWN

    def crash(self, me: int) -> None:
        """The node stops; its tokens are lost with it."""
        if self.state[me] == DOWN:
            return
        if self.state[me] == WAITING:
            self.line.drop(me)
        elif self.state[me] == INSIDE:
            self.vacate(me)
        self.state[me] = DOWN
        self.request[me] = NIL
        self.tokens -= self.nodes[me].tokens()
        self.coordinators -= self.nodes[me].coordinators()
        for timer in [timer for timer in self.timer_numbers if timer[0] == me]:
            del self.timer_numbers[timer]
        if self.recorder is not None:
            self.recorder.step(self.now, self.nodes[me], "crash")

    def reset(self, me: int) -> None:
        """The node comes back with nothing in its memory."""
        if self.state[me] != DOWN:
            return  # of two resets that overlap the first to end has brought it back
        self.acting = me
        self.place(me, self.make(me, self.setup, self))
        self.state[me] = IDLE
        self.tokens += self.nodes[me].tokens()
        self.coordinators += self.nodes[me].coordinators()
        if self.recorder is not None:
            self.nodes[me].now = self.now
            self.recorder.step(self.now, self.nodes[me], "reset")
        self.call(me, "start")
        self.workload.back(me, self.now)

    def lose(self, msg: Message) -> None:
        """A message will never arrive; tokens in it count as lost."""
        self.tokens -= msg.tokens()
        self.coordinators -= msg.coordinators()

    # The properties.

    def violate(self, what: str) -> None:
        self.violation_count += 1
        if len(self.violations) < MOST_VIOLATIONS:
            self.violations.append(f"{what} at {self.now / 1e9:.6f} s")

    def census(self) -> None:
        """All tokens and coordinators there are, at nodes and under way, are those that were made."""
        tokens = 0
        coordinators = 0
        for me, node in enumerate(self.nodes):
            if self.state[me] != DOWN:
                tokens += node.tokens()
                coordinators += node.coordinators()
        for msg in self.under_way():
            tokens += msg.tokens()
            coordinators += msg.coordinators()
        if tokens != self.tokens:
            self.violate(f"tokens: {tokens} in the system, {self.tokens} are not lost")
        if coordinators != self.coordinators:
            self.violate(f"coordinator: {coordinators} in the system, {self.coordinators} are not lost")

    def finish(self) -> None:
        """After the last event: the last look at the properties."""
        if self.check and self.census_every > 0:
            self.census()
        if self.check and self.line.length > 0 and not self.stuck:
            self.violate(f"liveness: nothing moves any more, and {self.line.length} wait")
