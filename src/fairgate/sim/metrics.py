"""What a run measures at every entry, in pure Python.

The twin metrics.pyx counts in arrays as it goes. Here each wait is only stored, and everything else is computed on
demand, because counting at every entry is expensive in the interpreter (docs/notes/tuning.md).
"""

from collections.abc import Sequence
from itertools import chain


class Metrics:
    def __init__(self, n: int, warmup: int) -> None:
        self.warmup = warmup  # requests of each node left out of the waits
        self.entries = 0  # including those of the warm-up
        self.cancelled = 0
        self.lost = 0
        self.waits: list[list[int]] = [[] for _ in range(n)]  # by node, including those of the warm-up
        self.first = [warmup] * n  # by node: how many of those belong to the warm-up

    def entered(self, node: int, wait: int) -> None:
        self.entries += 1
        self.waits[node].append(wait)

    def restart(self) -> None:
        """Leave out all waits until now: the warm-up is over."""
        self.first = [max(first, len(waits)) for first, waits in zip(self.first, self.waits, strict=True)]

    def kept(self) -> list[list[int]]:
        """The waits of each node without those of the warm-up."""
        return [waits[first:] for first, waits in zip(self.first, self.waits, strict=True)]

    def kept_waits(self) -> list[int]:
        return list(chain.from_iterable(self.kept()))

    @property
    def counted(self) -> int:
        return len(self.kept_waits())

    @property
    def wait_total(self) -> int:
        return sum(self.kept_waits())

    @property
    def wait_max(self) -> int:
        return max(self.kept_waits(), default=0)

    def node_maxima(self) -> Sequence[int]:
        """The longest wait of each node that has entered since the warm-up."""
        return [max(kept) for kept in self.kept() if kept]

    def node_totals(self) -> list[int]:
        """The number of entries of each node."""
        return [len(waits) for waits in self.waits]
