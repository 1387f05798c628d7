"""Latency models, and the files that a matrix can be read from."""

from __future__ import annotations

import gzip
import os
from itertools import combinations
from pathlib import Path
from statistics import fmean

import pytest

from fairgate.errors import BadInput
from fairgate.sim.build import make_latency
from fairgate.sim.config import Config
from fairgate.sim.latency import Latency, Matrix, Pairs, Uniform, WideArea
from fairgate.sim.latency_files import LARGEST, read_matrix
from fairgate.sim.stream import Stream

MS = 1_000_000
THREE_MS = [[0, 5 * MS, 10 * MS], [5 * MS, 0, 20 * MS], [10 * MS, 20 * MS, 0]]  # half of 10, 20 and 40 ms


# The models.


def test_constant() -> None:
    latency = Latency(7)
    assert latency.fixed == 7
    assert latency.delay(0, 1) == latency.delay(1, 0) == 7


def test_uniform_stays_within_its_bounds_and_reaches_them() -> None:
    latency = Uniform(3, 6, Stream("a"))
    assert latency.fixed < 0  # messages overtake each other, so they need the heap
    assert {latency.delay(0, 1) for _ in range(200)} == {3, 4, 5, 6}


def test_uniform_of_one_value_is_that_value() -> None:
    latency = Uniform(5, 5, Stream("a"))
    assert {latency.delay(0, 1) for _ in range(20)} == {5}


def test_pairs_have_one_delay_for_all_messages_and_both_ways() -> None:
    latency = Pairs(3, 1_000, Stream("a"))
    found = {pair: latency.delay(*pair) for pair in combinations(range(60), 2)}
    assert all(latency.delay(j, i) == latency.delay(i, j) == delay for (i, j), delay in found.items())
    assert min(found.values()) < 20
    assert max(found.values()) > 980
    assert fmean(found.values()) == pytest.approx(501, rel=0.05)
    assert Pairs(3, 1_000, Stream("b")).delay(0, 1) != latency.delay(0, 1)


def test_pairs_are_the_same_compiled_and_interpreted() -> None:
    latency = Pairs(0, 200 * MS, Stream("1:latency"))
    assert [latency.delay(0, j) for j in (1, 2, 77_777)] == [146434186, 27486214, 47058754]


def test_matrix_gives_the_delay_of_an_ordered_pair() -> None:
    latency = Matrix([[0, 1, 2], [3, 0, 4], [5, 6, 0]])
    assert latency.fixed < 0
    assert [latency.delay(*pair) for pair in ((0, 1), (1, 0), (2, 0), (2, 1))] == [1, 3, 5, 6]


def round_trips(seed: int, n: int = 200) -> list[int]:
    latency = WideArea(n, Stream(f"{seed}:latency"))
    assert all(latency.delay(i, j) == latency.delay(j, i) for i, j in combinations(range(n), 2))
    return [2 * latency.delay(i, j) for i, j in combinations(range(n), 2)]


def test_the_wide_area_matches_king_as_the_paper_quotes_it() -> None:
    """A mean round trip around 182 ms, at most around 800 ms, highly heterogeneous."""
    seeds = [round_trips(seed) for seed in range(30)]
    assert fmean(map(fmean, seeds)) == pytest.approx(182 * MS, rel=0.03)
    assert max(map(max, seeds)) == 800 * MS
    assert min(map(min, seeds)) >= 2 * MS
    assert all(min(trips) < 40 * MS and max(trips) > 400 * MS for trips in seeds)


def test_the_wide_area_of_a_seed_is_always_the_same() -> None:
    assert round_trips(1, 20) == round_trips(1, 20) != round_trips(2, 20)


# The notation of --latency.


@pytest.mark.parametrize(
    ("text", "expected"),
    [("1", Latency), ("0", Latency), ("uniform:0.02,0.18", Uniform), ("pairs:uniform:0,0.2", Pairs), ("wan", WideArea)],
)
def test_each_model_has_its_notation(text: str, expected: type) -> None:
    assert type(make_latency(Config(latency=text))) is expected


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("-1", "latency must be 0 or more seconds, not -1"),
        ("nan", "latency must be 0 or more seconds, not nan"),
        ("inf", "latency must be 0 or more seconds, not inf"),
        ("uniform:1", "cannot read the latency uniform:1: write it as uniform:0.02,0.18"),
        ("uniform:1,2,3", "cannot read the latency uniform:1,2,3: write it as uniform:0.02,0.18"),
        ("uniform:a,b", "cannot read the latency uniform:a,b: write it as uniform:0.02,0.18"),
        ("uniform:2,1", "latency uniform:2,1: the bounds must be at least 0, the lower one first"),
        ("uniform:-1,1", "latency uniform:-1,1: the bounds must be at least 0, the lower one first"),
        ("uniform:0,inf", "latency uniform:0,inf: the bounds must be at least 0, the lower one first"),
        ("no/such/file", "cannot read the latency file no/such/file: No such file or directory"),
    ],
)
def test_a_nonsensical_latency_is_refused_in_one_line(text: str, line: str) -> None:
    with pytest.raises(BadInput) as wrong:
        make_latency(Config(latency=text))
    assert str(wrong.value) == line


# Files: the same three nodes in every format.

FORMS = {
    "csv": "0,10,20\n10,0,40\n20,40,0\n",
    "csv with comments, blanks and empty lines": "# round trips, ms\n\n 0, 10, 20 \n10,0,40\n\n20,40,0",
    "csv with names": "a;0,10,20\nb;10,0,40\nc;20,40,0\n",
    "csv with decimals": "0.0,10.0,20.0\n1e1,0,40\n20,40,0\n",
    "microseconds between blanks": "0 10000 20000\n10000 0 40000\n20000 40000 0\n",
    "microseconds between tabs": "0\t10000\t20000\n10000\t0\t40000\n20000\t40000\t0\n",
    "topology": "topology E2EGraph\nfailure_model NullFailureModel\n\nnode 1\nnode 2\nnode 3\n"
    "1,2 10000\n1,3 20000\n2,3 40000\n",
    "topology in both directions": "node a\nnode b\nnode c\na,b 10000\nb,a 10000\nc,a 20000\nc,b 40000\n",
}


def file(folder: Path, text: str | bytes) -> str:
    path = folder / "matrix"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


@pytest.mark.parametrize("form", FORMS)
def test_every_format_is_read(tmp_path: Path, form: str) -> None:
    assert read_matrix(file(tmp_path, FORMS[form]), 3, Stream("a")) == THREE_MS


@pytest.mark.parametrize("form", FORMS)
def test_every_format_may_be_gzipped(tmp_path: Path, form: str) -> None:
    assert read_matrix(file(tmp_path, gzip.compress(FORMS[form].encode())), 3, Stream("a")) == THREE_MS


def test_the_seed_chooses_the_nodes_of_a_larger_file(tmp_path: Path) -> None:
    path = file(tmp_path, FORMS["csv"])
    chosen = {str(read_matrix(path, 2, Stream(f"{seed}"))) for seed in range(30)}
    assert chosen == {str([[0, ms * MS], [ms * MS, 0]]) for ms in (5, 10, 20)}  # every pair of rows
    configs = [Config(nodes=2, k=1, latency=path, seed=seed) for seed in range(10)]
    delays = [make_latency(config).delay(0, 1) for config in configs]
    assert len(set(delays)) > 1
    assert delays == [make_latency(config).delay(0, 1) for config in configs]


def test_directions_may_differ(tmp_path: Path) -> None:
    assert read_matrix(file(tmp_path, "0,10\n30,0\n"), 2, Stream("a")) == [[0, 5 * MS], [15 * MS, 0]]
    assert read_matrix(file(tmp_path, "node x\nnode y\nx,y 10000\ny,x 30000\n"), 2, Stream("a")) == [
        [0, 5 * MS],
        [15 * MS, 0],
    ]


def test_a_file_may_be_given_as_the_latency(tmp_path: Path) -> None:
    latency = make_latency(Config(nodes=3, k=1, latency=file(tmp_path, FORMS["csv"])))
    assert [latency.delay(1, other) for other in range(3)] == THREE_MS[1]


GZIPPED = gzip.compress(b"0,10\n10,0\n" * 100, mtime=0)

ERRORS: dict[str, tuple[str | bytes, str]] = {
    "empty": ("", "{} has 0 nodes, but the run has 3: use a larger file or fewer nodes"),
    "too small": ("0,10\n10,0\n", "{} has 2 nodes, but the run has 3: use a larger file or fewer nodes"),
    "ragged": ("0,10,20\n10,0\n20,40,0\n", "{}: row 2 has 2 entries, but the matrix has 3 rows"),
    "not square": ("0,1,2,3\n" * 3, "{}: row 1 has 4 entries, but the matrix has 3 rows"),
    "words": ("0,10,20\n10,far,40\n20,40,0\n", "{}: row 2 is not a row of latencies: '10,far,40'"),
    "not a number": ("0,nan,20\n" * 3, "{}: row 1 is not a row of latencies: '0,nan,20'"),
    "infinite": ("0,inf,20\n" * 3, "{}: row 1 is not a row of latencies: '0,inf,20'"),
    "too long": ("0,1e13,20\n" * 3, "{}: row 1 is not a row of latencies: '0,1e13,20'"),
    "below zero": ("0,10,20\n10,0,-1\n20,40,0\n", "{}: row 2 is empty or has a negative latency"),
    "a name alone": ("a;\nb;\nc;\n", "{}: row 1 is empty or has a negative latency"),
    "a pair is missing": (
        "node 1\nnode 2\nnode 3\n1,2 10000\n1,3 20000\n",
        "{} has no latency between its nodes 2 and 3",
    ),
    "topology with words": ("node 1\nnode 2\nnode 3\n1,2 far\n", "{}: not a latency: '1,2 far'"),
    "topology with no value": ("node 1\nnode 2\nnode 3\n1,2\n", "{}: not a latency: '1,2'"),
    "infinite topology": ("node 1\nnode 2\nnode 3\n1,2 inf\n", "{}: not a latency: '1,2 inf'"),
    "topology with too long a time": ("node 1\nnode 2\n1,2 1e16\n", "{}: not a latency: '1,2 1e16'"),
    "topology of nodes alone": ("node 1\n" * 100_000, "{} has no latency between some of its 100,000 nodes"),
    "binary": (b"\xff\xfe\x00\x81", "cannot read the latency file {}: not a text or gzip file"),
    "gzip cut off": (GZIPPED[:-9], "cannot read the latency file {}: not a text or gzip file"),
    "gzip header alone": (b"\x1f\x8b and then nothing", "cannot read the latency file {}: not a text or gzip file"),
    "gzip gone bad": (
        GZIPPED[:12] + b"\xff" * 4 + GZIPPED[16:],
        "cannot read the latency file {}: not a text or gzip file",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_a_bad_file_is_refused_in_one_line(tmp_path: Path, name: str) -> None:
    content, line = ERRORS[name]
    path = file(tmp_path, content)
    with pytest.raises(BadInput) as wrong:
        read_matrix(path, 3, Stream("a"))
    assert str(wrong.value) == line.format(path)


def test_a_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="Is a directory"):
        read_matrix(str(tmp_path), 3, Stream("a"))


ZEROS = gzip.compress(bytes(LARGEST + 1), mtime=0)


def test_a_file_that_unpacks_to_very_much_is_refused_without_reading_all_of_it(tmp_path: Path) -> None:
    path = file(tmp_path, ZEROS + b"no gzip here: anyone who reads on fails")
    with pytest.raises(BadInput) as wrong:
        read_matrix(path, 3, Stream("a"))
    assert str(wrong.value) == f"the latency file {path} has more than 64 MB unpacked: use one with fewer nodes"


def test_a_very_large_file_is_refused(tmp_path: Path) -> None:
    path = file(tmp_path, "0,10\n10,0\n")
    os.truncate(path, LARGEST + 1)
    with pytest.raises(BadInput) as wrong:
        read_matrix(path, 2, Stream("a"))
    assert str(wrong.value) == f"the latency file {path} has more than 64 MB: use one with fewer nodes"


def test_a_file_of_the_largest_size_is_read(tmp_path: Path) -> None:
    path = file(tmp_path, FORMS["csv"] + "#" * (LARGEST - len(FORMS["csv"])))
    assert read_matrix(path, 3, Stream("a")) == THREE_MS
