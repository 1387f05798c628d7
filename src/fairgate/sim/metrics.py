"""What a run measures at every entry, in O(1)."""

from collections.abc import Sequence

from fairgate.core.numbers import numbers


class Metrics:
    def __init__(self, n: int, warmup: int) -> None:
        self.warmup = warmup  # requests of each node left out of the waits
        self.entries = 0  # all, the left out ones too
        self.cancelled = 0
        self.lost = 0
        self.counted = 0  # waits kept
        self.wait_total = 0
        self.wait_max = 0
        self.waits = numbers(1024)
        self.node_entries = numbers(n)
        self.node_max = numbers(n)  # longest wait of each node

    def entered(self, node: int, wait: int) -> None:
        self.entries += 1
        self.node_entries[node] += 1
        if self.node_entries[node] > self.warmup:
            if self.counted == len(self.waits):
                self.grow()
            self.waits[self.counted] = wait
            self.counted += 1
            self.wait_total += wait
            if wait > self.wait_max:
                self.wait_max = wait
            if wait > self.node_max[node]:
                self.node_max[node] = wait

    def restart(self) -> None:
        """Forget all waits until now: the run has warmed up."""
        self.counted = 0
        self.wait_total = 0
        self.wait_max = 0
        for node in range(len(self.node_max)):
            self.node_max[node] = 0

    def grow(self) -> None:
        more = numbers(2 * self.counted)
        more[: self.counted] = self.waits
        self.waits = more

    def kept_waits(self) -> Sequence[int]:
        """A view of the waits, not a copy, where compiled."""
        return self.waits[: self.counted]

    def node_maxima(self) -> list[int]:
        return list(self.node_max)

    def node_totals(self) -> list[int]:
        return list(self.node_entries)
