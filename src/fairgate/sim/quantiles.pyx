"""Exact quantiles without sorting a million waits or making Python integers of them: the twin of quantiles.py.

Counts the values by their highest bits, picks the bucket that holds the quantile, and continues with the next bits of
the values in that bucket.
"""

from array import array

cdef enum:
    BITS = 12
    BUCKETS = 4096


def rank(double share, long long count):
    return max(1, -int(-share * count // 1))


def quantiles(values, shares):
    cdef const long long[::1] row = values if not isinstance(values, list) else array("q", values)
    if row.shape[0] == 0:
        return [0 for _ in shares]
    return [select(row, rank(share, row.shape[0])) for share in shares]


def median(values):
    cdef const long long[::1] row = values if not isinstance(values, list) else array("q", values)
    cdef long long count = row.shape[0]
    if count == 0:
        raise ValueError("no median of no values")
    if count % 2:
        return select(row, count // 2 + 1)
    return (select(row, count // 2) + select(row, count // 2 + 1)) / 2.0


cdef long long select(const long long[::1] row, long long place):
    """The value at this position, from 1, of the sorted row. Values must not be negative."""
    cdef long long counts[BUCKETS]
    cdef long long low = 0, value, largest = 0, i, bucket
    cdef int bits = 0, shift
    for i in range(row.shape[0]):
        if row[i] > largest:
            largest = row[i]
    while largest >> bits:
        bits += 1
    while bits > 0:
        shift = bits - BITS if bits > BITS else 0
        for i in range(BUCKETS):
            counts[i] = 0
        for i in range(row.shape[0]):
            value = row[i] - low
            if value >= 0 and value >> bits == 0:
                counts[value >> shift] += 1
        bucket = 0
        while counts[bucket] < place:
            place -= counts[bucket]
            bucket += 1
        low += bucket << shift
        bits = shift
    return low
