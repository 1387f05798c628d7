"""Exact quantiles without sorting a million waits or making Python integers of them: the twin of quantiles.py.

Counts the values by their highest bits, picks the bucket that holds the quantile, and continues with the next bits of
the values in that bucket. The first count serves all quantiles. Once a bucket has few values they are copied, so that
all others need not be read again.
"""

from array import array

from libc.stdlib cimport free, malloc

cdef enum:
    BITS = 12
    BUCKETS = 4096
    FEW = 1 << 14  # values that are copied: 128 KiB

cdef struct Counted:  # how many of the values from `low` up to `low` + 2**bits are in each bucket of 2**shift values
    long long low
    int bits
    int shift
    long long counts[BUCKETS]


def rank(double share, long long count):
    return max(1, -int(-share * count // 1))


def quantiles(values, shares):
    cdef const long long[::1] row = values if not isinstance(values, list) else array("q", values)
    cdef Counted all_values
    if row.shape[0] == 0:
        return [0 for _ in shares]
    count_all(row, &all_values)
    return [select(row, &all_values, rank(share, row.shape[0])) for share in shares]


def median(values):
    cdef const long long[::1] row = values if not isinstance(values, list) else array("q", values)
    cdef long long count = row.shape[0]
    cdef Counted all_values
    if count == 0:
        raise ValueError("no median of no values")
    count_all(row, &all_values)
    if count % 2:
        return select(row, &all_values, count // 2 + 1)
    return (select(row, &all_values, count // 2) + select(row, &all_values, count // 2 + 1)) / 2.0


cdef void count_all(const long long[::1] row, Counted* into) noexcept:
    """Count a row that is not empty, of values that are not negative."""
    cdef long long largest = 0, i
    for i in range(row.shape[0]):
        largest = max(largest, row[i])
    into.low = 0
    into.bits = 0
    while largest >> into.bits:
        into.bits += 1
    count(&row[0], row.shape[0], into)


cdef void count(const long long* values, long long n, Counted* into) noexcept:
    cdef long long value, i
    into.shift = into.bits - BITS if into.bits > BITS else 0
    for i in range(BUCKETS):
        into.counts[i] = 0
    for i in range(n):
        value = values[i] - into.low
        if value >= 0 and value >> into.bits == 0:
            into.counts[value >> into.shift] += 1


cdef long long select(const long long[::1] row, Counted* all_values, long long place) except? -1:
    """The value at this position, from 1, of the sorted row."""
    cdef Counted counted = all_values[0]
    cdef const long long* values = &row[0]
    cdef long long* few = NULL
    cdef long long n = row.shape[0], bucket, left
    while counted.bits > 0:
        bucket = 0
        while counted.counts[bucket] < place:
            place -= counted.counts[bucket]
            bucket += 1
        left = counted.counts[bucket]
        counted.low += bucket << counted.shift
        counted.bits = counted.shift
        if few == NULL and left <= FEW:
            few = copied(values, n, &counted, left)
            values = few
            n = left
        count(values, n, &counted)
    free(few)
    return counted.low


cdef long long* copied(const long long* values, long long n, Counted* wanted, long long count) except NULL:
    """Those of the values that the bits of `wanted` allow, `count` in all."""
    cdef long long* few = <long long*>malloc(count * sizeof(long long))
    cdef long long value, i, found = 0
    if few == NULL:
        raise MemoryError
    for i in range(n):
        value = values[i] - wanted.low
        if value >= 0 and value >> wanted.bits == 0:
            few[found] = values[i]
            found += 1
    return few
