"""Means with their 95 % intervals, for figures and claims."""

from collections.abc import Sequence
from math import sqrt
from statistics import fmean, stdev

# Quantiles of Student's t distribution for 95 %, two-sided, by degrees of freedom.
T_QUANTILES = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
    2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
NORMAL = 1.960


def mean_and_margin(values: Sequence[float]) -> tuple[float, float]:
    """The mean, and by how much the true mean may differ, with 95 % confidence; 0 if there is only one value."""
    count = len(values)
    if count < 2:
        return fmean(values), 0.0
    quantile = T_QUANTILES[count - 2] if count - 2 < len(T_QUANTILES) else NORMAL
    return fmean(values), quantile * stdev(values) / sqrt(count)
