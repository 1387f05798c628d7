"""Writes the rows of a sweep as CSV, Parquet or JSON lines, by the ending of the file's name."""

import csv
import json
import os
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from fairgate.errors import BadInput

FORMATS = (".csv", ".parquet", ".jsonl")


def check_name(path: Path) -> None:
    """Raises BadInput if no table can be written under this name. Better before a long sweep than after it."""
    if path.suffix not in FORMATS:
        raise BadInput(
            f"cannot write a table to {path}: its name must end in {', '.join(FORMATS[:-1])} or {FORMATS[-1]}"
        )
    if path.suffix == ".parquet" and find_spec("pyarrow") is None:
        raise BadInput(f"writing {path} needs pyarrow: pip install 'fairgate[parquet]', or choose a name in .csv")
    if path.is_dir():
        raise BadInput(f"cannot write {path}: it is a directory")
    folder = path.absolute().parent
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise BadInput(f"cannot write {path}: {folder} is not a directory that can be written to")


def write_rows(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    write_whole(path, lambda new: WRITERS[path.suffix](new, rows))


def write_page(path: Path, text: str) -> None:
    write_whole(path, lambda new: new.write_text(text, encoding="utf-8"))


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Writes a new file beside the old one first: an interrupt leaves one of the two, and whole."""
    new = path.with_name(f".{path.name}.new")
    try:
        write(new)
        new.replace(path)
    except OSError as wrong:
        new.unlink(missing_ok=True)
        raise BadInput(f"cannot write {path}: {wrong.strerror}") from wrong


def names_of(rows: Sequence[dict[str, Any]]) -> list[str]:
    """The columns. Rows of different protocols may have different ones."""
    return list(dict.fromkeys(name for row in rows for name in row))


def write_csv(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, names_of(rows), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def write_json_lines(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


def write_parquet(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    pyarrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    columns = {name: [row.get(name) for row in rows] for name in names_of(rows)}
    parquet.write_table(pyarrow.table(columns), path)


WRITERS = {".csv": write_csv, ".parquet": write_parquet, ".jsonl": write_json_lines}
