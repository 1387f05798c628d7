"""Imports between packages have no cycles, and pure packages import neither clocks nor randomness nor I/O.

docs/architecture.md shows the packages; `python -m tests.tidy.imports` prints the actual imports.
"""

from __future__ import annotations

from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from tests.tidy.imports import PACKAGE, SOURCES, edges, imports, package_of

PURE = {"core", "protocols", "overlay", "recovery"}
IMPURE = {
    "asyncio",
    "datetime",
    "multiprocessing",
    "os",
    "random",
    "secrets",
    "select",
    "signal",
    "socket",
    "subprocess",
    "threading",
    "time",
    "uuid",
}
MAY_IMPORT: dict[str, set[str]] = {
    "request": set(),
    "errors": {"request"},
    "processes": set(),
    "core": {"errors"},
    "protocols": {"core", "errors"},
    "overlay": {"core", "errors"},
    "recovery": {"arguments", "core", "errors"},
    "registry": {"core", "errors", "overlay", "protocols", "recovery"},  # it lists them all
    "known_options": {"core", "errors", "overlay", "recovery"},
    "trace": {"core", "errors"},
    "scenario": {"core", "errors", "trace"},
    "sim": {"arguments", "core", "errors", "overlay", "processes", "recovery", "registry", "trace"},
    "check": {"core", "errors", "processes", "recovery", "registry", "scenario", "trace"},
    "walks": {"arguments", "core", "errors", "live", "overlay", "recovery", "registry", "scenario"},
    "swarm": {"core", "errors", "overlay", "processes", "protocols", "recovery", "registry", "sim"},
    "mutation": {"check", "core", "errors", "processes", "protocols", "registry", "scenario", "sim", "swarm", "walks"},
    "arguments": {"errors"},
    "misuse": set(),
    "forgotten": set(),
    "on_first_use": {"arguments", "errors"},
    "interface": {"arguments", "errors", "forgotten", "misuse", "on_first_use", "request"},
    "prometheus": {"core", "errors"},
    "once": set(),
    "room": {"arguments", "core", "errors", "interface", "once", "prometheus", "request"},
    "net": {"arguments", "core", "errors", "once"},
    "command": {"arguments", "room"},
    "live": {
        "arguments", "core", "errors", "interface", "net", "prometheus", "recovery", "registry", "request", "room",
        "trace",
    },
    "api": {"arguments", "errors", "interface", "live", "misuse", "net", "on_first_use", "request", "room"},
    "sync": {"arguments", "errors", "interface", "live", "misuse", "net", "on_first_use", "request", "room"},
    "lab": {
        "arguments", "core", "errors", "known_options", "processes", "protocols", "registry", "sim", "sync", "trace",
        "__init__",
    },
    "torture": {"errors", "net", "sync"},
    "cli": {
        "arguments", "known_options", "lab", "torture",
        "check", "command", "core", "errors", "live", "mutation", "net", "overlay", "processes", "recovery", "registry",
        "prometheus", "room", "scenario", "sim", "swarm", "sync", "trace",
    },
    "_pure": set(),
    "__init__": {"_pure", "api", "errors"},  # api on first use
    "__main__": {"cli"},
}  # fmt: skip

NESTED = """
from fairgate.core import ids

def late():
    import random
    from fairgate.sim.run import simulate
"""

EDGES = edges()
PURE_PARTS = {
    PACKAGE / "room" / f"{name}.py" for name in ("guestbook", "layout", "lending", "links", "notes", "rules", "table")
}
PURE_FILES = [path for path in SOURCES if package_of(path) in PURE or path in PURE_PARTS]


@pytest.mark.parametrize("path", PURE_FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_pure_packages_import_neither_clocks_nor_randomness_nor_io(path: Path) -> None:
    assert {name.partition(".")[0] for name in imports(path)} & IMPURE == set()


def test_imports_inside_functions_are_found(tmp_path: Path) -> None:
    plain, cython = tmp_path / "nested.py", tmp_path / "nested.pxd"
    plain.write_text(NESTED)
    cython.write_text("from libc.stdlib cimport free\nfrom fairgate.core.node cimport Node\n")
    assert list(imports(plain)) == ["fairgate.core.ids", "random", "fairgate.sim.run.simulate"]
    assert list(imports(cython)) == ["libc.stdlib", "fairgate.core.node"]


@pytest.mark.parametrize("package", sorted(EDGES))
def test_a_package_imports_only_what_it_may(package: str) -> None:
    assert package in MAY_IMPORT, f"add {package} to MAY_IMPORT in this test"
    assert EDGES[package] <= MAY_IMPORT[package]


@pytest.mark.parametrize("graph", [EDGES, MAY_IMPORT], ids=["actual", "allowed"])
def test_no_cycle(graph: dict[str, set[str]]) -> None:
    """static_order raises CycleError, which names the packages on the cycle."""
    assert set(TopologicalSorter(graph).static_order()) == set(graph)


def test_the_table_lists_no_package_that_does_not_exist() -> None:
    assert set(MAY_IMPORT) == set(EDGES)
