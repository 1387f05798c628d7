"""Results of earlier runs, by their parameters and the version of the code: an SQLite file.

An interrupted sweep goes on where it stopped, and a repeated one does nothing twice. Changed code makes other results,
so it never finds those of the code before.
"""

import hashlib
import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import fairgate
from fairgate.core.numbers import COMPILED
from fairgate.errors import BadInput
from fairgate.sim.config import Config

SIMULATION = ("core", "protocols", "overlay", "recovery", "sim")  # packages that the result of a simulation depends on
LOCKED_SECONDS = 60.0  # to wait for another run that writes to the same file
SOURCES = (".py", ".pyx", ".pxd")
TABLE = "CREATE TABLE IF NOT EXISTS results (code TEXT, config TEXT, result TEXT, PRIMARY KEY (code, config))"


@cache
def code_version(packages: tuple[str, ...] = SIMULATION) -> str:
    """Of the code in these packages; of all code if there are none. Where there are no sources: of the package."""
    root = Path(fairgate.__file__).parent
    digest = hashlib.sha256(f"{fairgate.__version__} {COMPILED}".encode())
    for folder in [root / package for package in packages] or [root]:
        for path in sorted(folder.rglob("*")):
            if path.suffix in SOURCES:
                digest.update(path.relative_to(root).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()[:16]


class Cache:
    """Use it with `with`. Every result is on disk as soon as it is put in."""

    def __init__(self, path: Path, packages: tuple[str, ...] = SIMULATION) -> None:
        self.code = code_version(packages)
        self.path = path
        with self.complaining():
            self.connection = sqlite3.connect(path, timeout=LOCKED_SECONDS)
            try:
                self.connection.execute(TABLE)
            except BaseException:
                self.connection.close()
                raise

    @contextmanager
    def complaining(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.DatabaseError as wrong:
            locked = "locked" in str(wrong)
            advice = "wait for the other run that uses it" if locked else "remove the file, or name another"
            raise BadInput(f"cannot use the cache {self.path}: {wrong}; {advice}") from wrong

    def __enter__(self) -> "Cache":
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()

    def get(self, key: str) -> Any | None:
        found = self.connection.execute(
            "SELECT result FROM results WHERE code = ? AND config = ?", (self.code, key)
        ).fetchone()
        return None if found is None else json.loads(found[0])

    def put(self, key: str, result: Any) -> None:
        """The result must be JSON: dicts with text as keys, lists, numbers and text."""
        with self.complaining(), self.connection:
            self.connection.execute(
                "INSERT OR REPLACE INTO results VALUES (?, ?, ?)", (self.code, key, json.dumps(result))
            )


def described(config: Config) -> str:
    """The key of a simulation: its parameters, with the contents of a latency file besides its name."""
    path = Path(config.latency)
    contents = {"latency_file": digest_of(path, path.stat().st_mtime_ns)} if path.is_file() else {}
    return json.dumps(config.describe() | contents, sort_keys=True)


@cache
def digest_of(path: Path, _changed: int) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]
