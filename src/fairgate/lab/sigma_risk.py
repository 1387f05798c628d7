"""How likely lost memories break mutual exclusion: SG section III and figure 2.

A replica that loses its memory may vote twice. k + 1 clients need (k + 1) m votes of n replicas, so they are inside
together only if (k + 1) m - n replicas voted twice. With n = 3f + 1 and m = 2f + 1, f lost memories are harmless.
"""

from math import exp, lgamma, log, log1p

NEGLIGIBLE = 1e-18  # a share of the sum


def resets_survived(n: int, m: int, k: int = 1) -> int:
    """How many replicas may lose their memory while a client is inside: one less than can let another one in."""
    return max((k + 1) * m - n - 1, 0)


def break_probability(n: int, m: int, stay: float, life: float, k: int = 1) -> float:
    """The probability that so many of n replicas lose their memory during a stay that one more client can enter.

    `life` is the mean lifetime of a replica, `stay` the time that a client is inside. As in SG, a replica loses its
    memory in this time with probability stay / life.
    """
    p = min(stay / life, 1.0)
    least = max((k + 1) * m - n, 0)
    if p in (0.0, 1.0):
        return 1.0 if least <= n * p else 0.0
    total = 0.0
    for lost in range(least, n + 1):
        choices = lgamma(n + 1) - lgamma(lost + 1) - lgamma(n - lost + 1)  # logarithms: floats end at 1e308
        term = exp(choices + lost * log(p) + (n - lost) * log1p(-p))
        total += term
        if lost > n * p and term <= NEGLIGIBLE * total:
            break
    return min(total, 1.0)


def advised(n: int) -> tuple[int, int]:
    """The number of replicas and the quorum that SG advises instead of n replicas: n = 3f + 1 and m = 2f + 1."""
    f = max((n + 1) // 3, 1)
    return 3 * f + 1, 2 * f + 1
