"""What a run measures at every entry, plain; `metrics.pyx` counts in arrays as it goes.

Here a wait is only put where it belongs, and all else is worked out when somebody asks: to the interpreter
counting at every entry is dear (docs/benchmarks.md).
"""

from itertools import chain


class Metrics:
    def __init__(self, n: int, warmup: int) -> None:
        self.warmup = warmup  # requests of each node left out of the waits
        self.entries = 0  # all, the left out ones too
        self.cancelled = 0
        self.lost = 0
        self.waits: list[list[int]] = [[] for _ in range(n)]  # of each node, the left out ones too
        self.first = [warmup] * n  # of each node, how many of those are left out

    def entered(self, node: int, wait: int) -> None:
        self.entries += 1
        self.waits[node].append(wait)

    def restart(self) -> None:
        """Forget all waits until now: the run has warmed up."""
        self.first = [max(first, len(waits)) for first, waits in zip(self.first, self.waits, strict=True)]

    def kept(self) -> list[list[int]]:
        """The waits that count, of each node."""
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

    def node_maxima(self) -> list[int]:
        """The longest wait of each node that came in."""
        return [max(kept, default=0) for kept, waits in zip(self.kept(), self.waits, strict=True) if waits]

    def node_totals(self) -> list[int]:
        """The entries of each node."""
        return [len(waits) for waits in self.waits]
