"""The inner loop of the simulator, plain: what FAIRGATE_PURE=1 and machines without a compiler run.

`loop.pyx` is the same in C; tests drive both with the same input. Only what every single event goes
through is here: the event queue, the sending and the delivering. Everything else is in engine.py, which
is one source for both.

Events come out by time. A lane is a queue for events that come in time order by themselves: messages that
all take as long, and exits after stays that all last as long. Whatever comes out of order goes to the heap,
so a wrong hint costs time and never order. At the same moment messages come before exits, and both before
the heap's events, which keep the order of pushing; so no event of a lane needs a number of its own.
"""

from collections import defaultdict, deque
from collections.abc import Iterator
from heapq import heappop, heappush

from fairgate.core.message import Message
from fairgate.core.node import Node
from fairgate.core.numbers import numbers
from fairgate.core.outbox import Outbox
from fairgate.sim.events import DELIVER, RELEASE

Event = tuple[int, int, int, int, int, Message | None]  # time, order, kind, destination, source, message
NEVER: Event = (1 << 63, 0, 0, 0, 0, None)


class Loop(Outbox):
    # Slots: past thirty fields the interpreter keeps an object's fields in a dict, and that costs it 8 % of a run.
    # fmt: off
    __slots__ = (
        "acting", "bound", "delay", "events", "exits", "heap", "ids", "messages", "n", "near", "nodes", "now", "passed",
        "plain", "pushed", "received", "sent"
    )
    # fmt: on

    def __init__(self, n: int) -> None:
        self.n = n
        self.ids = frozenset(range(n))
        self.now = 0
        self.acting = 0  # whose step it is
        self.events = 0
        self.plain = False  # no faults, no journal, no clocks: a delivery is just that
        self.fixed = -1
        self.nodes: list[Node] = []
        self.received = numbers(n)  # messages that each node received
        self.sent: dict[type[Message], int] = {}
        self.passed: defaultdict[type[Message], int] = defaultdict(int)  # hops after the first
        self.heap: list[Event] = [NEVER]
        self.messages: deque[tuple[int, int, int, Message]] = deque()  # time, destination, source, message
        self.exits: deque[tuple[int, int, int]] = deque()  # time, seat, request
        self.pushed = 0  # into the heap, whose events keep the order of pushing
        self.bound = NEVER[0]  # when the first event comes that is not in the lane of messages

    @property
    def fixed(self) -> int:
        """How long every message takes, if all take as long and nothing befalls them; else -1."""
        return self.delay

    @fixed.setter
    def fixed(self, delay: int) -> None:
        self.delay = delay
        self.near = self.ids if delay >= 0 else frozenset()  # to whom a message goes straight into its lane

    def place(self, me: int, node: Node) -> None:
        """Put a node where its events will find it."""
        if me == len(self.nodes):
            self.nodes.append(node)
        else:
            self.nodes[me] = node

    def push(self, time: int, kind: int, dst: int, src: int, msg: Message | None) -> None:
        """Into the heap."""
        self.pushed += 1
        heappush(self.heap, (time, self.pushed, kind, dst, src, msg))
        if time < self.bound:
            self.bound = time

    def push_exit(self, time: int, seat: int, request: int) -> None:
        """Into the lane of exits, unless one that comes later is there already."""
        exits = self.exits
        if exits and exits[-1][0] > time:
            self.push(time, RELEASE, seat, request, None)
        else:
            exits.append((time, seat, request))
            if time < self.bound:
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
        elif dst in self.ids:
            self.carry(dst, msg)
        else:
            self.stray(dst, msg)

    def run(self, most: int) -> bool:
        """Up to `most` events; False when there is nothing left to do."""
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
            elif heap[0] is not NEVER:
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
                self.events += done
                return False
        self.events += most
        return True

    def clear(self) -> None:
        """Forget all events: the run ends."""
        self.heap[:] = [NEVER]
        self.messages.clear()
        self.exits.clear()
        self.bound = NEVER[0]

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
        return len(self.heap) - 1 + len(self.messages) + len(self.exits)

    def under_way(self) -> Iterator[Message]:
        """Every message in the queue, in no order."""
        yield from (event[3] for event in self.messages)
        yield from (event[5] for event in self.heap if event[5] is not None)

    def sent_by_tag(self) -> dict[str, int]:
        return dict(sorted((kind.tag, count) for kind, count in self.sent.items()))

    def sent_total(self) -> int:
        return sum(self.sent.values())

    def passed_by_tag(self) -> dict[str, int]:
        """Hops after the first: a message that is passed on is sent once."""
        return dict(sorted((kind.tag, count) for kind, count in self.passed.items()))

    def loads(self) -> list[int]:
        return list(self.received)
