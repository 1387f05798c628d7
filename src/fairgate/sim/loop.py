"""The inner loop of the simulator, plain: what FAIRGATE_PURE=1 and machines without a compiler run.

`loop.pyx` is the same in C; tests drive both with the same input. Only what every single event goes
through is here: the event queue, the sending and the delivering. Everything else is in engine.py, which
is one source for both.

Events come out by (time, order of pushing). A lane is a queue for events that come in time order by
themselves, as messages do that all take as long; whatever comes out of order goes to the heap, so a
wrong hint costs time and never order.
"""

from collections import defaultdict, deque
from collections.abc import Iterator
from heapq import heappop, heappush

from fairgate.core.message import Message
from fairgate.core.node import Node
from fairgate.core.numbers import numbers
from fairgate.core.outbox import Outbox
from fairgate.sim.events import DELIVER

HEAP, MESSAGES, EXITS = -1, 0, 1  # lanes; the heap is for events in no order
Event = tuple[int, int, int, int, int, Message | None]
NEVER: Event = (1 << 63, 0, 0, 0, 0, None)


class Loop(Outbox):
    def __init__(self, n: int) -> None:
        self.n = n
        self.now = 0
        self.acting = 0  # whose step it is
        self.events = 0
        self.plain = False  # no faults, no journal, no clocks: a delivery is just that
        self.fixed = -1  # how long every message takes, if all take as long and nothing befalls them
        self.nodes: list[Node] = []
        self.received = numbers(n)  # messages that each node received
        self.sent: defaultdict[type[Message], int] = defaultdict(int)
        self.heap: list[Event] = [NEVER]
        self.lanes: tuple[deque[Event], deque[Event]] = (deque(), deque())
        self.messages = self.lanes[MESSAGES]
        self.last_time = [0, 0]
        self.bound = NEVER  # the first event that is not in the lane of messages
        self.pushed = 0

    def place(self, me: int, node: Node) -> None:
        """Put a node where its events will find it."""
        if me == len(self.nodes):
            self.nodes.append(node)
        else:
            self.nodes[me] = node

    def push(self, time: int, kind: int, dst: int, src: int, msg: Message | None, lane: int) -> None:
        self.pushed += 1
        event = (time, self.pushed, kind, dst, src, msg)
        if lane >= 0 and time >= self.last_time[lane]:
            self.last_time[lane] = time
            self.lanes[lane].append(event)
            if lane == MESSAGES:
                return
        else:
            heappush(self.heap, event)
        if event < self.bound:
            self.bound = event

    def send(self, dst: int, msg: Message) -> None:
        self.sent[type(msg)] += 1
        if not 0 <= dst < self.n:
            self.stray(dst, msg)
        elif self.fixed >= 0:
            self.pushed += 1
            self.messages.append((self.now + self.fixed, self.pushed, DELIVER, dst, self.acting, msg))
        else:
            self.carry(dst, msg)

    def run(self, most: int) -> bool:
        """Up to `most` events; False when there is nothing left to do."""
        heap, exits, messages = self.heap, self.lanes[EXITS], self.messages
        nodes, received, plain = self.nodes, self.received, self.plain
        self.bound = exits[0] if exits and exits[0] < heap[0] else heap[0]
        for done in range(most):
            if messages and messages[0] < self.bound:
                self.now, _, kind, dst, src, msg = messages.popleft()
            else:
                event = self.bound
                if event is NEVER:
                    self.events += done
                    return False
                if event is heap[0]:
                    heappop(heap)
                else:
                    exits.popleft()
                self.bound = exits[0] if exits and exits[0] < heap[0] else heap[0]
                self.now, _, kind, dst, src, msg = event
            if plain and msg is not None:
                self.acting = dst
                received[dst] += 1
                nodes[dst].on_message(src, msg)
            else:
                self.handle(kind, dst, src, msg)
        self.events += most
        return True

    def clear(self) -> None:
        """Forget all events: the run ends."""
        self.heap[:] = [NEVER]
        self.lanes[0].clear()
        self.lanes[1].clear()
        self.bound = NEVER

    def stray(self, dst: int, msg: Message) -> None:
        """A message to nobody: a fault of the protocol."""
        raise NotImplementedError

    def carry(self, dst: int, msg: Message) -> None:
        """Send a message whose delay or fate is not `fixed`."""
        raise NotImplementedError

    def handle(self, kind: int, dst: int, src: int, msg: Message | None) -> None:
        """Everything but a plain delivery."""
        raise NotImplementedError

    def size(self) -> int:
        return len(self.heap) - 1 + len(self.lanes[0]) + len(self.lanes[1])

    def under_way(self) -> Iterator[Message]:
        """Every message in the queue, in no order."""
        for events in (self.heap, *self.lanes):
            for event in events:
                if event[5] is not None:
                    yield event[5]

    def sent_by_tag(self) -> dict[str, int]:
        return dict(sorted((kind.tag, count) for kind, count in self.sent.items()))

    def sent_total(self) -> int:
        return sum(self.sent.values())

    def loads(self) -> list[int]:
        return list(self.received)
