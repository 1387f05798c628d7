"""Rows of runs, and means with their 95 % intervals, for figures and claims."""

from collections.abc import Mapping, Sequence
from math import sqrt
from statistics import fmean, stdev
from typing import Any

from fairgate.lab.sweeps import SHARES, Row

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


def share_interval(successes: int, trials: int) -> tuple[float, float]:
    """The 95 % interval of a share (Wilson's), which has a width even if all trials succeeded, or none."""
    share, square = successes / trials, NORMAL * NORMAL / trials
    middle = (share + square / 2) / (1 + square)
    margin = NORMAL / (1 + square) * sqrt(share * (1 - share) / trials + square / (4 * trials))
    return max(middle - margin, 0.0), min(middle + margin, 1.0)


def select(rows: Sequence[Row], **wanted: Any) -> list[Row]:
    """The rows with these values."""
    return [row for row in rows if all(row.get(name) == value for name, value in wanted.items())]


def column(rows: Sequence[Row], name: str) -> list[float]:
    return [float(row[name]) for row in rows]


def mean(rows: Sequence[Row], name: str) -> float:
    return fmean(column(rows, name))


def wait_distribution(rows: Sequence[Row], least: float, scale: float = 1.0) -> list[tuple[float, float, float]]:
    """A series to draw: the quantiles of the waits, each a mean over the runs, times `scale` and at least `least`."""
    quantiles = zip(*(row["wait_shares"] for row in rows), strict=True)
    return [(max(scale * fmean(values), least), step / SHARES, 0.0) for step, values in enumerate(quantiles)]


def estimate(values: Sequence[float], unit: str = "", digits: int = 1) -> str:
    """The mean with its 95 % interval, such as "354.6 ± 0.2 s"."""
    found, margin = mean_and_margin(values)
    spread = f" ± {margin:,.{digits}f}" if len(values) > 1 else ""
    return f"{found:,.{digits}f}{spread}{' ' + unit if unit else ''}"


def estimates(found: Mapping[str, Sequence[float]], unit: str = "", digits: int = 1) -> str:
    """The estimate for each name, such as "fair_k 0.5 ± 0.1, bv95 42.2 ± 0.3"."""
    return ", ".join(f"{name} {estimate(values, unit, digits)}" for name, values in found.items())


def estimate_share(values: Sequence[float]) -> str:
    """The share of ones, with its 95 % interval, such as "0.60 (0.45 to 0.74)"."""
    low, high = share_interval(round(sum(values)), len(values))
    return f"{fmean(values):.3f} ({low:.3f} to {high:.3f})"
