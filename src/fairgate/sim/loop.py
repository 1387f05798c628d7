"""The inner loop of the simulator, plain: what FAIRGATE_PURE=1 and machines without a compiler run.

`loop.pyx` is the same in C; tests drive both with the same input. Only what every single event goes
through is here: the event queue, the sending and the delivering. Everything else is in engine.py, which
is one source for both.

Events come out by time. A lane is a queue for events that come in time order by themselves: messages that
all take as long, and exits after stays that all last as long. Whatever comes out of order goes to the heap,
so a wrong hint costs time and never order. At the same moment messages come before exits, and both before
the heap's events, which keep the order of pushing; so no event of a lane needs a number of its own.

Gates that are nothing to each other may take turns: each has a queue of its own, and one after the other they run up
to the next event that concerns them all. What a gate needs is then at hand while it runs. To each gate all is as it
would be if the events of all came in order; the clock goes back from one turn to the next.
"""

from collections import defaultdict, deque
from collections.abc import Iterator
from heapq import heappop, heappush

from fairgate.core.keyed import Gated
from fairgate.core.message import Message
from fairgate.core.node import Node
from fairgate.core.numbers import numbers
from fairgate.core.outbox import Outbox
from fairgate.sim.events import ACQUIRE, CANCEL, DELIVER, PLANNED, RELEASE

Event = tuple[int, int, int, int, int, Message | None]  # time, order, kind, destination, source, message
NEVER: Event = (1 << 63, 0, 0, 0, 0, None)
OF_SEATS = frozenset((ACQUIRE, RELEASE, CANCEL))


class Queue:
    """All events; or those of one gate, or those that concern all gates, where they take turns."""

    __slots__ = ("exits", "heap", "messages")

    def __init__(self) -> None:
        self.heap: list[Event] = [NEVER]
        self.messages: deque[tuple[int, int, int, Message]] = deque()  # time, destination, source, message
        self.exits: deque[tuple[int, int, int]] = deque()  # time, seat, request

    def size(self) -> int:
        return len(self.heap) - 1 + len(self.messages) + len(self.exits)

    def first(self) -> Event:
        """The first of those that it holds, but for exits: those that concern all gates have none."""
        time, order = self.heap[0][:2]
        if self.messages and self.messages[0][0] < time:
            return (self.messages[0][0], 0, 0, 0, 0, None)
        return NEVER if self.heap[0] is NEVER else (time, order, 0, 0, 0, None)

    def clear(self) -> None:
        self.heap[:] = [NEVER]
        self.messages.clear()
        self.exits.clear()


class Loop(Outbox):
    # Slots: past thirty fields the interpreter keeps an object's fields in a dict, and that costs it 8 % of a run.
    # fmt: off
    __slots__ = (
        "acting", "bound", "common", "delay", "events", "exits", "first_turn", "heap", "ids", "latest", "messages",
        "moved", "n", "near", "next_turn", "nodes", "now", "passed", "plain", "pushed", "queues", "received", "sent",
        "stop", "turn", "turns"
    )
    # fmt: on

    def __init__(self, n: int) -> None:
        self.n = n
        self.ids = frozenset(range(n))
        self.now = 0
        self.acting = 0  # whose step it is
        self.events = 0
        self.plain = False  # no faults, no journal, no clocks: a delivery is just that
        self.nodes: list[Node] = []
        self.received = numbers(n)  # messages that each node received
        self.sent: dict[type[Message], int] = {}
        self.passed: defaultdict[type[Message], int] = defaultdict(int)  # hops after the first
        self.pushed = 0  # into a heap, whose events keep the order of pushing
        self.bound = NEVER[0]  # when the first event comes that is not in the lane of messages
        self.queues = [Queue()]  # of all gates together, and then of each, if they take turns
        self.turns = 0  # how many gates take turns
        self.turn = 0  # whose turn it is, 1..turns; 0: nobody's
        self.common = 0  # plans, which concern all gates
        self.latest = 0  # how far any gate has come in its turn
        self.delay = -1
        self.give_turn(0)

    @property
    def fixed(self) -> int:
        """How long every message takes, if all take as long and nothing befalls them; else -1."""
        return self.delay

    @fixed.setter
    def fixed(self, delay: int) -> None:
        self.delay = delay
        self.see_near()

    def see_near(self) -> None:
        """To whom a message goes straight into the lane."""
        at_once = self.delay >= 0 and (self.turn > 0 or self.turns == 0)
        self.near = self.ids if at_once else frozenset()

    # Turns.

    def take_turns(self, gates: int, first: int, every: int) -> None:
        """From now on gates first, first + every ... of so many take turns. No event of theirs is planned yet."""
        self.queues += [Queue() for _ in range(gates)]
        self.turns = gates
        self.first_turn = first + 1
        self.next_turn = every
        self.moved = True  # did anything happen since it was last nobody's turn?
        self.see_near()

    def give_turn(self, turn: int) -> None:
        self.latest = max(self.latest, self.now)
        self.turn = turn if turn <= self.turns else 0
        queue = self.queues[self.turn]
        self.heap, self.messages, self.exits = queue.heap, queue.messages, queue.exits
        self.stop = self.queues[0].first() if self.turn else NEVER
        if self.stop is not NEVER:
            heappush(self.heap, self.stop)
        self.see_near()

    def end_turn(self) -> None:
        if self.stop is not NEVER:
            heappop(self.heap)
        self.give_turn(self.turn + self.next_turn)

    # Events.

    def place(self, me: int, node: Node) -> None:
        """Put a node where its events will find it."""
        if me == len(self.nodes):
            self.nodes.append(node)
        else:
            self.nodes[me] = node

    def push(self, time: int, kind: int, dst: int, src: int, msg: Message | None) -> None:
        """Into the heap; where gates take turns, of the gate that it is about."""
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
        """Into the lane of exits, unless one that comes later is there already."""
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
            self.sent[type(msg)] += 1  # in a plain dict: the interpreter knows a short way for those alone
        except KeyError:
            self.sent[type(msg)] = 1
        if dst in self.near:
            self.messages.append((self.now + self.delay, dst, self.acting, msg))
        elif dst not in self.ids:
            self.stray(dst, msg)
        elif self.delay >= 0:  # while it is nobody's turn
            queue = self.queues[1 + msg.gate % self.turns if isinstance(msg, Gated) else 0]
            queue.messages.append((self.now + self.delay, dst, self.acting, msg))
        else:
            self.carry(dst, msg)

    def run(self, most: int) -> bool:
        """Up to `most` events; False when there is nothing left to do."""
        left = most
        while left > 0:
            if self.turns == 0:
                left -= self.stretch(left)
                break
            if self.turn > 0:
                done = self.stretch(left)
                self.moved |= done > 0
                left -= done
                if left > 0:
                    self.end_turn()
            else:
                done = self.stretch(1)
                left -= done
                if done == 0 and not self.moved:
                    self.moved = True  # and all may be asked again
                    break
                self.moved = False
                self.give_turn(self.first_turn)
        self.events += most - left
        return left == 0

    def stretch(self, most: int) -> int:
        """Up to `most` events of the queue whose turn it is; answers how many there were."""
        messages, exits, heap = self.messages, self.exits, self.heap
        nodes, received, plain = self.nodes, self.received, self.plain
        self.bound = min(heap[0][0], exits[0][0] if exits else NEVER[0])
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
        """Forget all events: the run ends."""
        for queue in self.queues:
            queue.clear()
        if self.stop is not NEVER:
            heappush(self.heap, self.stop)
        self.bound = self.stop[0]

    def stray(self, dst: int, msg: Message) -> None:
        """A message to nobody: a fault of the protocol."""
        raise NotImplementedError

    def carry(self, dst: int, msg: Message) -> None:
        """Send a message whose delay or fate is not `fixed`."""
        raise NotImplementedError

    def release(self, seat: int, request: int) -> None:
        """An exit."""
        raise NotImplementedError

    def handle(self, kind: int, dst: int, src: int, msg: Message | None) -> None:
        """Everything but a plain delivery and the exits of the lane."""
        raise NotImplementedError

    def size(self) -> int:
        return sum(queue.size() for queue in self.queues) - (self.stop is not NEVER)

    def under_way(self) -> Iterator[Message]:
        """Every message in the queue, in no order."""
        for queue in self.queues:
            yield from (event[3] for event in queue.messages)
            yield from (event[5] for event in queue.heap if event[5] is not None)

    def sent_by_tag(self) -> dict[str, int]:
        return dict(sorted((kind.tag, count) for kind, count in self.sent.items()))

    def sent_total(self) -> int:
        return sum(self.sent.values())

    def passed_by_tag(self) -> dict[str, int]:
        """Hops after the first: a message that is passed on is sent once."""
        return dict(sorted((kind.tag, count) for kind, count in self.passed.items()))

    def loads(self) -> list[int]:
        return list(self.received)
