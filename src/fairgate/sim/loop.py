"""The simulator's inner loop in pure Python, used with FAIRGATE_PURE=1 and on machines without a compiler.

`loop.pyx` is its twin in C; tests drive both with the same input. This module has only what every event goes through:
the event queue, sending and delivering. Everything else is in engine.py, which is one source for both.

Events are handled in time order. A lane is a plain queue for events that are pushed in time order anyway: messages
with equal latency, and exits after stays of equal length. All other events go to the heap, and so does an exit that
would break the order of its lane: a wrong guess costs time but never reorders events. At the same moment, messages
come before exits, and both come before events in the heap, which keep the order in which they were pushed. So events
in a lane need no sequence number.

Independent gates may take turns. Each gate then has its own queue, and one gate after another runs up to the next
event that concerns them all. That keeps a gate's data in the cache while it runs. Every gate sees exactly what it
would see if the events of all gates were handled in time order; but the clock goes back from one turn to the next.
"""

from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from heapq import heapify, heappop, heappush

from fairgate.core.keyed import Gated
from fairgate.core.message import Message
from fairgate.core.node import Node
from fairgate.core.numbers import numbers
from fairgate.core.outbox import Outbox, not_sent
from fairgate.core.units import NEVER
from fairgate.sim.events import ACQUIRE, CANCEL, DELIVER, PLANNED, RELEASE
from fairgate.sim.seat import Seat

Event = tuple[int, int, int, int, int, Message | None]  # time, order, kind, destination, source, message
END: Event = (NEVER - 1, 1 << 63, 0, 0, 0, None)  # of the clock: later events are not handled
OF_SEATS = frozenset((ACQUIRE, RELEASE, CANCEL))


class Queue:
    """All events; or, where gates take turns, the events of one gate or those that concern all gates."""

    __slots__ = ("exits", "heap", "messages")

    def __init__(self) -> None:
        self.heap: list[Event] = [END]
        self.messages: deque[tuple[int, int, int, Message]] = deque()  # time, destination, source, message
        self.exits: deque[tuple[int, int, int]] = deque()  # time, seat, request

    def size(self) -> int:
        return len(self.heap) - 1 + len(self.messages) + len(self.exits)

    def first(self) -> Event:
        """The time and order of the first event. Exits are ignored: the queue that concerns all gates has none."""
        time, order = self.heap[0][:2]
        if self.messages and self.messages[0][0] < time:
            return (self.messages[0][0], 0, 0, 0, 0, None)
        return END if self.heap[0] is END else (time, order, 0, 0, 0, None)

    def clear(self) -> None:
        self.heap[:] = [END]
        self.messages.clear()
        self.exits.clear()


class Loop(Outbox):
    # Why slots: an object with more than thirty fields keeps them in a dict, which slows a run down by 8 %.
    # fmt: off
    __slots__ = (
        "acting", "bound", "common", "delay", "events", "exits", "first_turn", "heap", "ids", "latest", "messages",
        "moved", "n", "near", "next_turn", "nodes", "now", "passed", "plain", "pushed", "queues", "received", "seat",
        "sent", "stop", "turn", "turns"
    )
    # fmt: on

    def __init__(self, n: int) -> None:
        self.n = n
        self.ids = frozenset(range(n))
        self.now = 0
        self.acting = 0  # the node whose step is running
        self.events = 0
        self.plain = False  # no faults, no journal, no clocks to set: deliver without checks
        self.nodes: list[Node] = []
        self.seat: list[Seat | None] = []  # by number (seats.py)
        self.received = numbers(n)  # messages received, by node
        self.sent: dict[type[Message], int] = {}
        self.passed: defaultdict[type[Message], int] = defaultdict(int)  # hops after the first
        self.pushed = 0  # events pushed into a heap: their sequence numbers
        self.bound = END[0]  # time of the first event that is not in the lane of messages
        self.queues = [Queue()]  # of all gates together, followed by one per gate if they take turns
        self.turns = 0  # how many gates take turns; 0: there are no turns
        self.turn = 0  # the gate whose turn it is, 1..turns; 0: no gate's
        self.common = 0  # planned events handled so far; they concern all gates
        self.latest = 0  # the latest time that any gate has reached in its turn
        self.delay = -1
        self.give_turn(0)

    @property
    def fixed(self) -> int:
        """The delay of every message if they are all equal and the network has no faults; otherwise -1."""
        return self.delay

    @fixed.setter
    def fixed(self, delay: int) -> None:
        self.delay = delay
        self.see_near()

    def see_near(self) -> None:
        """Work out `near`: the nodes to which a message goes straight into the lane."""
        at_once = self.delay >= 0 and (self.turn > 0 or self.turns == 0)
        self.near = self.ids if at_once else frozenset()

    # Turns.

    def take_turns(self, gates: int, first: int, every: int) -> None:
        """From now on gates `first`, `first + every` ... of `gates` take turns.

        Must be called before any event of a gate is planned.
        """
        self.queues += [Queue() for _ in range(gates)]
        self.turns = gates
        self.first_turn = first + 1
        self.next_turn = every
        self.moved = True  # did any gate handle an event since it was last no gate's turn?
        self.see_near()

    def give_turn(self, turn: int) -> None:
        self.latest = max(self.latest, self.now)
        self.turn = turn if turn <= self.turns else 0
        queue = self.queues[self.turn]
        self.heap, self.messages, self.exits = queue.heap, queue.messages, queue.exits
        self.stop = END
        self.see_near()

    def see_stop(self) -> None:
        """End the turn at the next event that concerns all gates. One may have been planned since the turn began."""
        first = self.queues[0].first()
        if first != self.stop:
            if self.stop is not END:
                self.heap.remove(self.stop)
                heapify(self.heap)
            self.stop = first
            if first is not END:
                heappush(self.heap, first)

    def end_turn(self) -> None:
        if self.stop is not END:
            heappop(self.heap)
        self.give_turn(self.turn + self.next_turn)

    # Events.

    def place(self, me: int, node: Node) -> None:
        """Install a node under this number, replacing the previous one if there is one."""
        if me == len(self.nodes):
            self.nodes.append(node)
        else:
            self.nodes[me] = node

    def node_at(self, me: int) -> Node:
        return self.nodes[me]

    def make_room(self, seats: int) -> None:
        self.seat = [None] * seats

    def put_seat(self, number: int, seat: Seat) -> None:
        self.seat[number] = seat

    def seat_at(self, number: int) -> Seat | None:
        """The seat with this number, or None if it was never used."""
        return self.seat[number]

    def use_large_pages(self) -> None:
        """All nodes are in place: the compiled loop asks for large pages (large_pages.pyx)."""

    def push(self, time: int, kind: int, dst: int, src: int, msg: Message | None) -> None:
        """Push an event into the heap; where gates take turns, into the heap of the gate that it concerns."""
        self.pushed += 1
        heap = self.heap
        if self.turns and kind == PLANNED:
            heap = self.queues[0].heap
        elif self.turns and kind in OF_SEATS:
            heap = self.queues[1 + dst % self.turns].heap
        heappush(heap, (time, self.pushed, kind, dst, src, msg))
        if time < self.bound and heap is self.heap:
            self.bound = time

    def push_exit(self, time: int, seat: int, request: int) -> None:
        """Push an exit into its lane, or into the heap if the lane already has a later one."""
        exits = self.queues[1 + seat % self.turns].exits if self.turns else self.exits
        if exits and exits[-1][0] > time:
            self.push(time, RELEASE, seat, request, None)
        else:
            exits.append((time, seat, request))
            if time < self.bound and exits is self.exits:
                self.bound = time

    def pass_on(self, dst: int, msg: Message) -> None:
        self.passed[type(msg)] += 1
        self.sent[type(msg)] = self.sent.get(type(msg), 0) - 1
        self.send(dst, msg)

    def send(self, dst: int, msg: Message) -> None:
        try:
            self.sent[type(msg)] += 1  # a plain dict, because the interpreter has a fast path for those alone
        except KeyError:
            if not isinstance(msg, Message):
                raise not_sent(dst, msg) from None
            self.sent[type(msg)] = 1
        if dst in self.near:
            self.messages.append((self.now + self.delay, dst, self.acting, msg))
        elif dst not in self.ids:
            self.stray(dst, msg)
        elif self.delay >= 0:  # while it is no gate's turn
            queue = self.queues[1 + msg.gate % self.turns if isinstance(msg, Gated) else 0]
            queue.messages.append((self.now + self.delay, dst, self.acting, msg))
        else:
            self.carry(dst, msg)

    def count_arrival(self, dst: int) -> None:
        """Count a message that reaches a node by another way than the plain one."""
        self.received[dst] += 1

    def run(self, most: int) -> bool:
        """Handle up to `most` events; return False when no events are left."""
        left = most
        while left > 0:
            if self.turns == 0:
                left -= self.stretch(left)
                break
            if self.turn > 0:
                self.see_stop()
                done = self.stretch(left)
                self.moved |= done > 0
                left -= done
                if left > 0:
                    self.end_turn()
            else:
                done = self.stretch(1)
                left -= done
                if done == 0 and not self.moved:
                    self.moved = True  # so that the next call tries every gate again
                    break
                self.moved = False
                self.give_turn(self.first_turn)
        self.events += most - left
        return left == 0

    def stretch(self, most: int) -> int:
        """Handle up to `most` events of the queue whose turn it is; return how many there were."""
        messages, exits, heap = self.messages, self.exits, self.heap
        nodes, received, plain = self.nodes, self.received, self.plain
        self.bound = min(heap[0][0], exits[0][0] if exits else END[0])
        for done in range(most):
            if messages and messages[0][0] <= self.bound:
                self.now, dst, src, msg = messages.popleft()
                if plain:
                    self.acting = dst
                    received[dst] += 1
                    nodes[dst].on_message(src, msg)
                else:
                    self.handle(DELIVER, dst, src, msg)
                continue
            time = heap[0][0]
            if exits and exits[0][0] <= time:
                self.now, dst, src = exits.popleft()
                self.bound = exits[0][0] if exits and exits[0][0] <= time else time
                self.release(dst, src)
            elif heap[0] is not self.stop:
                self.now, _, kind, dst, src, other = heappop(heap)
                time = heap[0][0]
                self.bound = exits[0][0] if exits and exits[0][0] <= time else time
                if plain and other is not None:
                    self.acting = dst
                    received[dst] += 1
                    nodes[dst].on_message(src, other)
                else:
                    self.handle(kind, dst, src, other)
            else:
                return done
        return most

    def clear(self) -> None:
        """Discard all events, which ends the run."""
        for queue in self.queues:
            queue.clear()
        if self.stop is not END:
            heappush(self.heap, self.stop)
        self.bound = self.stop[0]

    def stray(self, dst: int, msg: Message) -> None:
        """Handle a message to a node that does not exist: a bug in the protocol."""
        raise NotImplementedError

    def carry(self, dst: int, msg: Message) -> None:
        """Send a message whose delay is not `fixed`, or that the network may lose or double."""
        raise NotImplementedError

    def release(self, seat: int, request: int) -> None:
        """Handle an exit."""
        raise NotImplementedError

    def handle(self, kind: int, dst: int, src: int, msg: Message | None) -> None:
        """Handle any event other than a plain delivery or an exit from the lane."""
        raise NotImplementedError

    def size(self) -> int:
        return sum(queue.size() for queue in self.queues) - (self.stop is not END)

    def under_way(self) -> Iterator[Message]:
        """Every message in the queues, in no particular order."""
        for queue in self.queues:
            yield from (event[3] for event in queue.messages)
            yield from (event[5] for event in queue.heap if event[5] is not None)

    def sent_by_tag(self) -> dict[str, int]:
        return dict(sorted((kind.tag, count) for kind, count in self.sent.items()))

    def sent_total(self) -> int:
        return sum(self.sent.values())

    def passed_by_tag(self) -> dict[str, int]:
        """Hops after the first, by tag. `sent_by_tag` counts a message once, however often it is passed on."""
        return dict(sorted((kind.tag, count) for kind, count in self.passed.items()))

    def loads(self) -> Sequence[int]:
        return list(self.received)
