"""Exact quantiles of many whole numbers, plain; `quantiles.pyx` counts instead of sorting.

The quantile of a share is the smallest value that so large a share of all does not exceed.
"""

from collections.abc import Sequence


def rank(share: float, count: int) -> int:
    """The place, from 1, of that value in the ordered row."""
    return max(1, -int(-share * count // 1))


def quantiles(values: Sequence[int], shares: Sequence[float]) -> list[int]:
    ordered = sorted(values)
    if not ordered:
        return [0 for _ in shares]
    return [ordered[rank(share, len(ordered)) - 1] for share in shares]
