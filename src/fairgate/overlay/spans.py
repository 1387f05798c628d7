"""Sets of keys, as lists of half-open spans (first, past the last).

Spans are sorted and disjoint, and none wraps around the top of the circle.
"""

Span = tuple[int, int]

CIRCLE = 1 << 64


def spans_between(start: int, end: int) -> list[Span]:
    """The keys in (start, end]; all keys if the two are equal."""
    if start == end:
        return [(0, CIRCLE)]
    first = (start + 1) % CIRCLE
    return [(first, end + 1)] if first <= end else [(0, end + 1), (first, CIRCLE)]


def common(one: list[Span], other: list[Span]) -> list[Span]:
    pairs = [(max(a, c), min(b, d)) for a, b in one for c, d in other]
    return [(first, past) for first, past in pairs if first < past]


def without(one: list[Span], other: list[Span]) -> list[Span]:
    for c, d in other:
        pieces = [piece for a, b in one for piece in ((a, min(b, c)), (max(a, d), b))]
        one = [(first, past) for first, past in pieces if first < past]
    return one


def union(one: list[Span], other: list[Span]) -> list[Span]:
    found: list[Span] = []
    for first, past in sorted([*one, *other]):
        if found and first <= found[len(found) - 1][1]:
            begun, ended = found.pop()
            found.append((begun, max(ended, past)))
        else:
            found.append((first, past))
    return found


def holds(spans: list[Span], key: int) -> bool:
    return any(first <= key < past for first, past in spans)


def around(spans: list[Span], key: int) -> tuple[int, ...]:
    """The keys around this one without a gap, as (start, end]: the inverse of `spans_between`. Empty if it has none."""
    found = [(first, past) for first, past in spans if first <= key < past]
    if not found:
        return ()
    first, past = found[0]
    if first == 0 and past < CIRCLE:
        first = min([first, *[begun - CIRCLE for begun, ended in spans if ended == CIRCLE]])
    elif past == CIRCLE and first > 0:
        past = max([past, *[ended + CIRCLE for begun, ended in spans if begun == 0]])
    return ((first - 1) % CIRCLE, (past - 1) % CIRCLE)
