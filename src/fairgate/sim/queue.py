"""The event queue, plain: what FAIRGATE_PURE=1 and machines without a compiler run.

Events come out by (time, order of pushing). `queue.pyx` is the same queue with a C heap and ring
buffers; a test drives both with the same pushes. `lane` is a hint that means "this kind of event
mostly comes in time order"; heapq gains nothing from it.
"""

from collections.abc import Iterator
from heapq import heappop, heappush

from fairgate.core.message import Message

HEAP = -1  # the lane of events that come in no order
LANES = 2


class EventQueue:
    def __init__(self) -> None:
        self.heap: list[tuple[int, int, int, int, int, Message | None]] = []
        self.pushed = 0
        self.time = 0
        self.kind = 0
        self.dst = 0
        self.src = 0
        self.msg: Message | None = None

    def push(self, time: int, kind: int, dst: int, src: int, msg: Message | None, lane: int) -> None:
        self.pushed += 1
        heappush(self.heap, (time, self.pushed, kind, dst, src, msg))

    def pop(self) -> bool:
        """Take the next event out, into the fields; False if there is none."""
        if not self.heap:
            return False
        self.time, _, self.kind, self.dst, self.src, self.msg = heappop(self.heap)
        return True

    def size(self) -> int:
        return len(self.heap)

    def messages(self) -> Iterator[Message]:
        """Every message that is under way, in no order."""
        return (event[5] for event in self.heap if event[5] is not None)


class Tally:
    """Messages counted by kind."""

    def __init__(self) -> None:
        self.counts: dict[type[Message], int] = {}

    def count(self, msg: Message) -> None:
        kind = type(msg)
        self.counts[kind] = self.counts.get(kind, 0) + 1

    def by_tag(self) -> dict[str, int]:
        return {kind.tag: count for kind, count in sorted(self.counts.items(), key=lambda item: item[0].tag)}

    def total(self) -> int:
        return sum(self.counts.values())
