"""Reads latency matrices from files. The files hold round-trip times, which are halved.

Three formats are recognised: rows of comma-separated values in milliseconds (a row may begin with `name;`); rows of
blank-separated values in microseconds (p2psim's King `matrix`); and p2psim's topology files (`node i` lines, then
`i,j microseconds`). Files may be gzipped. A line that begins with `#` is a comment.
"""

import gzip
import zlib
from pathlib import Path

from fairgate.core.units import NEVER
from fairgate.errors import BadInput
from fairgate.sim.sampling import sample
from fairgate.sim.stream import Stream

US_TO_ONE_WAY = 500  # one-way ns per microsecond of round trip
MS_TO_ONE_WAY = 500_000
LARGEST = 64 << 20  # bytes of text: King's 1,740 nodes take 20 MB


def read_matrix(path: str, nodes: int, stream: Stream) -> list[list[int]]:
    """Return the one-way delays in ns between `nodes` random nodes of the file; raises BadInput if it is not usable.

    The nodes keep the order of the file, so if it has no more than these, node i is row i.
    """
    lines = [line for line in read_lines(path) if line and not line.startswith("#")]
    if any(line.startswith("node ") for line in lines):
        rows = read_topology(path, lines)
    else:
        rows = [read_row(path, number, line) for number, line in enumerate(lines, 1)]
    if len(rows) < nodes:
        raise BadInput(f"{path} has {len(rows)} nodes, but the run has {nodes}: use a larger file or fewer nodes")
    for number, row in enumerate(rows, 1):
        if len(row) != len(rows):
            raise BadInput(f"{path}: row {number} has {len(row)} entries, but the matrix has {len(rows)} rows")
    chosen = sorted(sample(stream, range(len(rows)), nodes))
    return [[rows[i][j] for j in chosen] for i in chosen]


def read_lines(path: str) -> list[str]:
    try:
        with Path(path).open("rb") as file:
            packed = file.peek(2)[:2] == b"\x1f\x8b"
            read = (gzip.GzipFile(fileobj=file) if packed else file).read(LARGEST + 1)
        if len(read) > LARGEST:
            size = f"{LARGEST >> 20} MB{' unpacked' * packed}"
            raise BadInput(f"the latency file {path} has more than {size}: use one with fewer nodes")
        text = read.decode()
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as wrong:
        why = wrong.strerror if isinstance(wrong, OSError) and wrong.strerror else "not a text or gzip file"
        raise BadInput(f"cannot read the latency file {path}: {why}") from wrong
    return [line.strip() for line in text.splitlines()]


def read_row(path: str, number: int, line: str) -> list[int]:
    cells = line.rpartition(";")[2]
    unit = MS_TO_ONE_WAY if "," in cells else US_TO_ONE_WAY
    try:
        row = [one_way(cell, unit) for cell in cells.replace(",", " ").split()]
    except (ValueError, OverflowError) as wrong:
        raise BadInput(f"{path}: row {number} is not a row of latencies: {line[:40]!r}") from wrong
    if not row or min(row) < 0:
        raise BadInput(f"{path}: row {number} is empty or has a negative latency")
    return row


def one_way(round_trip: str, unit: int) -> int:
    """The delay in ns; raises ValueError or OverflowError if it is no number, or too long a time."""
    delay = int(float(round_trip) * unit)
    if delay >= NEVER:
        raise OverflowError
    return delay


def read_topology(path: str, lines: list[str]) -> list[list[int]]:
    names = [line.split()[1] for line in lines if line.startswith("node ") and len(line.split()) > 1]
    if len(names) * (len(names) - 1) // 2 > len(lines):
        raise BadInput(f"{path} has no latency between some of its {len(names):,} nodes")
    place = {name: i for i, name in enumerate(names)}
    rows = [[-1] * len(names) for _ in names]
    for line in lines:
        pair, _, value = line.partition(" ")
        src, comma, dst = pair.partition(",")
        if comma and src in place and dst in place:
            try:
                rows[place[src]][place[dst]] = one_way(value, US_TO_ONE_WAY)
            except (ValueError, OverflowError) as wrong:
                raise BadInput(f"{path}: not a latency: {line[:40]!r}") from wrong
    return [[symmetric(path, rows, i, j) for j in range(len(names))] for i in range(len(names))]


def symmetric(path: str, rows: list[list[int]], i: int, j: int) -> int:
    """The delay from i to j. A topology file may give it for one direction only: then both have the same."""
    delay = max(rows[i][j], rows[j][i]) if rows[i][j] < 0 else rows[i][j]
    if i == j:
        return max(delay, 0)
    if delay < 0:
        raise BadInput(f"{path} has no latency between its nodes {i + 1} and {j + 1}")
    return delay
