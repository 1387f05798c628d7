"""Exact quantiles of many integers, in pure Python; the twin quantiles.pyx counts instead of sorting.

The quantile of a share is the smallest value such that at least this share of all values does not exceed it.
"""

from collections.abc import Sequence
from statistics import median

__all__ = ["median", "quantiles", "rank"]


def rank(share: float, count: int) -> int:
    """The position of the quantile in the sorted values, counted from 1."""
    return max(1, -int(-share * count // 1))


def quantiles(values: Sequence[int], shares: Sequence[float]) -> list[int]:
    """The quantile of each share; all 0 if there are no values."""
    ordered = sorted(values)
    if not ordered:
        return [0 for _ in shares]
    return [ordered[rank(share, len(ordered)) - 1] for share in shares]
