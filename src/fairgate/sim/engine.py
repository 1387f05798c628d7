"""The simulator's engine: turns queued events into steps of the nodes and checks the properties as it goes.

Each event is one atomic step of one node. A single engine is the outbox of all its nodes: `acting` is the node whose
step is running. What requests, waits and enters is a seat (seats.py), one per node and gate. A request's number
encodes its gate: `request % resources`. The properties are in invariants.py.

The engine draws no random numbers itself. Latency, workload, choices and faults each have their own seeded stream, so
that changing one does not disturb the others.
"""

from collections.abc import Callable
from typing import Any, final

from fairgate.core.choose import Chooser
from fairgate.core.clock import Clock
from fairgate.core.ids import NIL
from fairgate.core.inputs import CALLS
from fairgate.core.layers import MakeNode
from fairgate.core.message import Message
from fairgate.core.numbers import COMPILED
from fairgate.core.setup import Setup
from fairgate.core.units import NEVER, SECOND
from fairgate.errors import BadInput
from fairgate.sim.events import ACQUIRE, CANCEL, DELIVER, PLANNED, RELEASE, TIMER
from fairgate.sim.interfaces import NetworkModel, Newcomers, Recorder
from fairgate.sim.invariants import Invariants
from fairgate.sim.latency import Latency
from fairgate.sim.loop import Loop
from fairgate.sim.seat import Seat
from fairgate.sim.seat_states import DOWN, IDLE, INSIDE, WAITING
from fairgate.sim.timeline import Timeline
from fairgate.sim.workload import Workload

Plan = Callable[["Engine"], None]
CLOCK_ENDS = f"the run would last longer than {NEVER // SECOND:,} s (146 years): use shorter times, or fewer requests"


class Engine(Invariants):
    # fmt: off
    __slots__ = (
        "chooser", "clocks", "hold", "impatient", "inside_time", "joins", "latency", "make", "marks", "mortal",
        "network", "noting", "plans", "recorder", "timeline", "timer_names", "timer_numbers", "timers_set", "warm_at",
        "warm_entries", "warm_sent"
    )
    # fmt: on

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
        spares: int = 0,
    ) -> None:
        Invariants.__init__(self, setup, workload, slots, warmup, check, spares)
        self.make = make
        self.latency = latency
        self.chooser = chooser
        self.network: NetworkModel | None = None
        self.joins: Newcomers | None = None  # brings nodes onto a dynamic ring, if there is one
        self.recorder: Recorder | None = None
        self.clocks: list[Clock] | None = None  # by node; None: all nodes share one clock
        self.mortal = False  # can nodes go down?
        self.warm_at = 0  # when the warm-up ended
        self.warm_entries = 0  # entries until then
        self.warm_sent = 0  # messages sent until then
        self.inside_time = 0  # ns that permits were held, in total
        self.plans: list[Plan] = []
        self.timer_numbers: dict[tuple[int, str], int] = {}
        self.timer_names: dict[int, str] = {}
        self.timers_set = 0
        self.noting = False  # count marks?
        self.marks: dict[str, int] = {}
        self.timeline: Timeline | None = None
        for me in range(self.n):
            self.place(me, make(me, setup, self))
        self.timed = self.nodes[0].timed
        self.impatient = False
        self.hold = -1  # ns that every entry lasts; -1: the workload decides for each entry

    # The run.

    def begin(self) -> None:
        """Start all nodes and plan the first requests."""
        self.tune()
        self.use_large_pages()
        self.tokens = sum([node.tokens() for node in self.nodes])
        self.coordinators = sum([node.coordinators() for node in self.nodes])
        self.workload.loop = self
        for me in range(self.members):
            self.call(me, "start")
        if self.joins is None:
            self.workload.begin(self.now)
        else:
            self.joins.begin(self)

    def tune(self) -> None:
        """Choose the shortest path that events may take through this run."""
        self.plain = self.recorder is None and self.network is None and self.clocks is None and not self.mortal
        if self.timed and not COMPILED:
            self.plain = False  # the plain loop sets no clocks
        self.fixed = self.latency.fixed if self.network is None else NIL
        self.impatient = self.workload.give_up_share > 0.0
        self.hold = -1 if self.workload.hold_random else self.workload.hold

    def run(self, most: int) -> bool:
        """Handle up to `most` events; return False when no events are left."""
        end = self.events + most
        every = self.census_every if self.census_every > 0 else most
        while self.events < end:
            more = Loop.run(self, min(end - self.events, every))
            if self.census_every > 0:
                self.census()
            self.watch()
            if not more:
                if self.size() > 0:
                    raise BadInput(CLOCK_ENDS)
                return False
        return True

    def handle(self, kind: int, dst: int, src: int, msg: Message | None) -> None:
        if kind == ACQUIRE:
            self.acquire(dst, src)
        elif kind == RELEASE:
            self.release(dst, src)
        elif msg is not None:
            self.deliver(dst, src, msg)
        elif kind == TIMER:
            self.timer(dst, src)
        elif kind == CANCEL:
            self.cancel(dst, src)
        else:
            self.common += 1
            self.plans[src](self)

    # One handler per kind of event.

    @final
    def deliver(self, dst: int, src: int, msg: Message) -> None:
        if self.is_down(dst):
            self.lose(msg)
        elif self.recorder is not None:
            self.count_arrival(dst)
            self.call(dst, "message", src, msg)
        else:
            node = self.nodes[dst]
            self.count_arrival(dst)
            self.acting = dst
            node.now = self.now if self.clocks is None else self.reading(dst)
            node.on_message(src, msg)

    @final
    def acquire(self, number: int, asked: int) -> None:
        self.workload.asked(number)
        seat = self.seat_at(number)
        if seat is None:
            seat = self.take_seat(number)
        if seat.state == IDLE:  # otherwise its node crashed after this request was planned
            self.requests += 1
            request = self.requests * self.resources + seat.gate
            seat.request = request
            seat.asked = asked
            seat.state = WAITING
            waiters = self.waiters[seat.gate]
            seat.place = waiters.join()
            if self.impatient:
                self.maybe_give_up(number, request)
            if self.plain:
                self.acting = seat.me
                node = self.node_at(seat.me)
                if self.timed:
                    node.now = self.now
                node.on_acquire(request)
            else:
                self.call(seat.me, "acquire", request)

    @final
    def maybe_give_up(self, number: int, request: int) -> None:
        patience = self.workload.give_up_after()
        if patience >= 0:
            self.push(self.now + patience, CANCEL, number, request, None)

    def release(self, number: int, request: int) -> None:
        seat = self.seat_at(number)
        if seat is not None and seat.request == request and seat.state == INSIDE:  # otherwise lost or crashed since
            self.vacate(seat)
            if self.plain:
                self.acting = seat.me
                node = self.node_at(seat.me)
                if self.timed:
                    node.now = self.now
                node.on_release(request)
            else:
                self.call(seat.me, "release", request)
            self.over(number)

    def cancel(self, number: int, request: int) -> None:
        seat = self.seat_at(number)
        if seat is not None and seat.request == request and seat.state == WAITING:  # otherwise it is inside or over
            self.metrics.cancelled += 1
            self.give_up(seat)
            seat.state = IDLE
            seat.request = NIL
            self.call(seat.me, "cancel", request)
            self.over(number)

    @final
    def give_up(self, seat: Seat) -> None:
        """Remove the seat's request from the waiters without an entry."""
        waiters = self.waiters[seat.gate]
        waiters.drop(seat.place)
        self.gave_up += 1

    def timer(self, me: int, number: int) -> None:
        name = self.timer_names.pop(number)
        if self.timer_numbers.get((me, name)) == number:  # otherwise set again or cancelled since
            del self.timer_numbers[me, name]
            self.call(me, "timer", name)
            self.watch()

    def warmed_up(self) -> None:
        """End the warm-up: waits, entries and messages are measured from now on."""
        self.warm_at = self.now
        self.warm_entries = self.metrics.entries
        self.warm_sent = self.sent_total()
        self.metrics.restart()
        if self.timeline is not None:
            self.timeline.restart()

    def end(self) -> None:
        """End the run now, even if requests still wait. Nothing is lost yet: this is the time for the last census."""
        if self.census_every > 0:
            self.census()
        self.cut = True
        self.discard()

    def call(self, me: int, event: str, *arguments: Any) -> None:
        """Run one step of a node. In a plain run most steps bypass this method (see `Loop.plain`)."""
        node = self.nodes[me]
        self.acting = me
        node.now = self.now if self.clocks is None else self.reading(me)
        if self.recorder is not None:
            self.recorder.step(node.now, node, event, *arguments)
        else:
            getattr(node, CALLS[event])(*arguments)

    def reading(self, me: int) -> int:
        """What this node's clock shows now."""
        if self.clocks is None:
            return self.now
        clock = self.clocks[me]
        reading = clock.reading(self.now)
        if reading >= NEVER:
            raise BadInput(CLOCK_ENDS)
        return reading

    # Exits.

    @final
    def vacate(self, seat: Seat) -> None:
        """Record that the seat's occupant is no longer inside."""
        self.inside_time += self.now
        occupancy = self.occupancies[seat.gate]
        occupancy.leave(seat.number, seat.slot)
        seat.state = IDLE
        seat.request = NIL
        if self.timeline is not None:
            self.timeline.left(self.now, self.inside())

    @final
    def over(self, number: int) -> None:
        """Let the workload plan the seat's next request, now that the current one has ended."""
        self.workload.done(number, self.now)
        if self.timed and self.workload.total_left == 0 and self.idle():
            self.discard()  # timers might otherwise keep the run going forever

    # The outbox of the nodes.

    def carry(self, dst: int, msg: Message) -> None:
        if self.network is not None:
            self.network.carry(self, self.acting, dst, msg)
        else:
            self.push(self.now + self.latency.delay(self.acting, dst), DELIVER, dst, self.acting, msg)

    @final
    def seat_of(self, request: int) -> Seat | None:
        """The seat at which the acting node made this request."""
        if self.resources == 1:
            return self.seat_at(self.acting)
        return self.seat_at(self.acting * self.resources + request % self.resources)

    def granted(self, request: int, slot: int, fence: int) -> None:
        seat = self.seat_of(request)
        if seat is None or seat.request != request or seat.state != WAITING:
            gate = request % self.resources
            self.violate(f"grant: node {self.acting} was granted a request that it is not waiting for (gate {gate})")
            return
        now = self.now
        self.inside_time -= now
        occupancy = self.occupancies[seat.gate]
        broken = occupancy.enter(seat.number, slot, fence)
        if broken and self.check:
            self.violate(broken)
        seat.state = INSIDE
        seat.slot = slot
        waiters = self.waiters[seat.gate]
        waiters.enter(seat.place)
        self.metrics.entered(seat.number, now - seat.asked)
        self.last_progress = now
        if self.timeline is not None:
            self.timeline.entered(now, seat.number, seat.asked, self.inside())
        if self.hold >= 0:
            self.push_exit(now + self.hold, seat.number, request)
        else:
            self.draw_stay(seat)

    @final
    def draw_stay(self, seat: Seat) -> None:
        stay = self.workload.stay(seat.number)
        if stay >= 0:
            self.push_exit(self.now + stay, seat.number, seat.request)

    def lost(self, request: int, why: str) -> None:
        seat = self.seat_of(request)
        if seat is not None and seat.request == request and seat.state == INSIDE:
            self.metrics.lost += 1
            self.vacate(seat)
            self.over(seat.number)

    def set_timer(self, name: str, delay: int) -> None:
        self.timers_set += 1
        self.timer_numbers[self.acting, name] = self.timers_set
        self.timer_names[self.timers_set] = name
        delay = min(delay, NEVER)
        due = self.now + delay
        if self.clocks is not None:
            due = min(self.clocks[self.acting].time(self.reading(self.acting) + delay), NEVER)
        self.push(due, TIMER, self.acting, self.timers_set, None)

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
        self.push(min(at, NEVER), PLANNED, 0, len(self.plans) - 1, None)

    def crash(self, me: int) -> None:
        """Stop the node; its tokens are lost with it."""
        if self.is_down(me):
            return
        self.down[me] = 1
        for seat in self.used_seats(me):
            if seat.state == WAITING:
                self.give_up(seat)
            elif seat.state == INSIDE:
                self.vacate(seat)
            seat.state = DOWN
            seat.request = NIL
        self.tokens -= self.nodes[me].tokens()
        self.coordinators -= self.nodes[me].coordinators()
        for timer in [timer for timer in self.timer_numbers if timer[0] == me]:
            del self.timer_numbers[timer]
        if self.recorder is not None:
            self.recorder.step(self.reading(me), self.nodes[me], "crash")

    def reset(self, me: int) -> None:
        """Bring the node back with empty memory."""
        if not self.is_down(me):
            return  # of two overlapping resets, the first to end has already brought it back
        self.acting = me
        self.place(me, self.make(me, self.setup, self))
        self.down[me] = 0
        for seat in self.used_seats(me):
            seat.state = IDLE
        self.tokens += self.nodes[me].tokens()
        self.coordinators += self.nodes[me].coordinators()
        if self.recorder is not None:
            self.nodes[me].now = self.reading(me)
            self.recorder.step(self.nodes[me].now, self.nodes[me], "reset")
        self.call(me, "start")
        for number in self.seat_numbers(me):
            self.workload.back(number, self.now)
