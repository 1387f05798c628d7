"""Which package imports which, read from the sources: `python -m tests.tidy.imports` prints it.

A package is a folder or a module directly below `fairgate`. C-level imports in .pxd and .pyx files count, as do imports
for type checking only, and the classes that registry.py names and imports on demand.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import fairgate

PACKAGE = Path(fairgate.__file__).parent
SOURCES = sorted([*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.pxd"), *PACKAGE.rglob("*.pyx")])
CYTHON = re.compile(r"^\s*(?:from\s+([\w.]+)\s+c?import\b|c?import\s+([\w.]+))", re.MULTILINE)
NAMED = re.compile(r'"(fairgate\.[\w.]+):\w+"')  # "module:Class"


def package_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].partition(".")[0]


def imports(path: Path) -> Iterator[str]:
    """The full names of everything that a file imports, also inside functions."""
    text = path.read_text()
    yield from NAMED.findall(text)
    if path.suffix != ".py":
        yield from (source or whole for source, whole in CYTHON.findall(text))
        return
    for found in ast.walk(ast.parse(text)):
        if isinstance(found, ast.Import):
            yield from (alias.name for alias in found.names)
        elif isinstance(found, ast.ImportFrom):
            assert found.level == 0, f"{path} has a relative import: import from fairgate instead"
            for alias in found.names:
                yield f"{found.module}.{alias.name}"


def packages_imported(path: Path) -> set[str]:
    """The other packages of fairgate that a file imports. `from fairgate import __version__` names none."""
    found = {name.split(".")[1] for name in imports(path) if name.startswith("fairgate.")}
    return found - {"__version__", package_of(path)}


def edges() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {package_of(path): set() for path in SOURCES}
    for path in SOURCES:
        found[package_of(path)] |= packages_imported(path)
    return found


if __name__ == "__main__":
    for package, imported in sorted(edges().items()):
        print(f"{package:10} -> {' '.join(sorted(imported)) or '(nothing)'}")
