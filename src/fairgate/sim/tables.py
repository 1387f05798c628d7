"""Writes the series of one or more runs to a file, as CSV or as Parquet: one row per entry, node or change of usage."""

import csv
from array import array
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from itertools import chain, repeat
from pathlib import Path

from fairgate.errors import BadInput
from fairgate.sim.summary import Result
from fairgate.sim.timeline import Columns

FORMATS = (".csv", ".parquet")
TIMES = ("time", "asked", "wait")


def check_file(path: str) -> None:
    """Raises BadInput if no table can be written under this name. Better before a long run than after it."""
    if Path(path).suffix not in FORMATS:
        raise BadInput(f"cannot write a table to {path}: its name must end in .csv or .parquet")
    if path.endswith(".parquet") and find_spec("pyarrow") is None:
        raise BadInput(f"writing {path} needs pyarrow: pip install 'fairgate[parquet]', or choose a name in .csv")
    try:
        Path(path).write_bytes(b"")
    except OSError as wrong:
        raise BadInput(f"cannot write {path}: {wrong.strerror}") from wrong


def waits_of(results: Sequence[Result]) -> Columns:
    """The waits of all runs, with the seed of each."""
    return joined(results, [result.waits for result in results])


def usage_of(results: Sequence[Result]) -> Columns:
    """Every change of the number inside, of all runs."""
    split = [zip(*result.usage, strict=True) for result in results]
    return joined(results, [dict(zip(("time", "inside"), columns, strict=True)) for columns in split])


def loads_of(results: Sequence[Result]) -> Columns:
    """The number of messages that each node received, of all runs."""
    return joined(results, [{"node": range(len(result.loads)), "messages": result.loads} for result in results])


def joined(results: Sequence[Result], tables: Sequence[Columns]) -> Columns:
    seeds = [
        repeat(result.seed, len(next(iter(table.values())))) for result, table in zip(results, tables, strict=True)
    ]
    whole: Columns = {"seed": array("q", chain.from_iterable(seeds))}
    for name in tables[0]:
        whole[name] = array("d" if name in TIMES else "q", chain.from_iterable(table[name] for table in tables))
    return whole


def write_table(path: str, columns: Columns) -> None:
    if path.endswith(".csv"):
        with Path(path).open("w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(columns)
            writer.writerows(zip(*columns.values(), strict=True))
    else:
        write_parquet(path, columns)


def write_parquet(path: str, columns: Columns) -> None:
    pyarrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    parquet.write_table(pyarrow.table({name: pyarrow.array(column) for name, column in columns.items()}), path)
