"""The rules of the house (docs/architecture.md) that a reader can rely on, because a test holds them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import fairgate
from fairgate.registry import PROTOCOLS

PACKAGE = Path(fairgate.__file__).parent
ROOT = PACKAGE.parents[1]
FILES = sorted(PACKAGE.rglob("*.py"))
MOST_LINES = 450

PURE = ("core", "protocols", "overlay", "recovery")
IMPURE = {"time", "random", "asyncio", "socket", "threading"}

BELOW_DRIVERS = {"core", "errors"}
BELOW_TOOLS = {"core", "protocols", "overlay", "recovery", "errors", "registry", "sim", "check", "net", "trace"}
MAY_IMPORT = {  # part of the package -> the parts it may import, besides itself. None: everything
    "__init__": {"_pure", "api", "errors"},  # api when it is first used
    "_pure": set(),
    "errors": set(),
    "core": {"errors"},
    "protocols": BELOW_DRIVERS,
    "overlay": BELOW_DRIVERS,
    "recovery": BELOW_DRIVERS,
    "registry": BELOW_DRIVERS | {"protocols", "overlay", "recovery"},  # names them all
    # The drivers, and the journal that they all write. A journal's reader plays it by hand, so trace knows sim.
    "sim": BELOW_TOOLS,
    "check": BELOW_TOOLS,
    "net": BELOW_TOOLS,
    "live": BELOW_TOOLS,  # peers and gates, on net
    "trace": BELOW_TOOLS,
}
TOOLS = {"lab", "api", "sync", "web", "cli", "bench", "__main__"}  # on top: they may import everything


def part_of(path: Path) -> str:
    """The folder right below the package, or the module there."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports(path: Path) -> Iterator[str]:
    """The full names of what a file imports, wherever in it."""
    for found in ast.walk(ast.parse(path.read_text())):
        if isinstance(found, ast.Import):
            yield from (alias.name for alias in found.names)
        elif isinstance(found, ast.ImportFrom):
            assert found.level == 0, f"{path} imports relatively: write fairgate..."
            for alias in found.names:
                yield f"{found.module}.{alias.name}"


def parts_imported(path: Path) -> set[str]:
    """Of the package: `from fairgate import __version__` is of no part."""
    found = {name.split(".")[1] for name in imports(path) if name.startswith("fairgate.")}
    return found - {"__version__", part_of(path)}


def module_of(path: Path) -> str:
    return ".".join(["fairgate", *path.relative_to(PACKAGE).with_suffix("").parts])


def shown(paths: list[Path]) -> list[str]:
    return [str(path.relative_to(PACKAGE)) for path in paths]


PURE_FILES = [path for path in FILES if part_of(path) in PURE]


@pytest.mark.parametrize("path", PURE_FILES, ids=shown(PURE_FILES))
def test_what_must_be_pure_imports_no_clock_no_chance_and_no_world(path: Path) -> None:
    assert {name.partition(".")[0] for name in imports(path)} & IMPURE == set()


PARTS = sorted({part_of(path) for path in FILES})


@pytest.mark.parametrize("part", PARTS)
def test_dependencies_point_downward(part: str) -> None:
    assert part in MAY_IMPORT or part in TOOLS, f"say in this test what {part} may import"
    if part in MAY_IMPORT:
        found = {name for path in FILES if part_of(path) == part for name in parts_imported(path)}
        assert found <= MAY_IMPORT[part]


@pytest.mark.parametrize("path", FILES, ids=shown(FILES))
def test_no_file_is_too_long_to_read(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= MOST_LINES


def test_every_pxd_lies_beside_its_source() -> None:
    lonely = [
        pxd
        for pxd in PACKAGE.rglob("*.pxd")
        if not (pxd.with_suffix(".py").exists() or pxd.with_suffix(".pyx").exists())
    ]
    assert lonely == []


def test_every_pyx_has_a_plain_twin_and_a_pxd() -> None:
    """Or there would be nothing to run where nothing can be compiled."""
    for pyx in PACKAGE.rglob("*.pyx"):
        assert pyx.with_suffix(".py").exists()
        assert pyx.with_suffix(".pxd").exists()


PROTOCOL_FILES = [  # not those that are a part of others: messages, or one side of a protocol
    path for path in FILES if part_of(path) == "protocols" and "\n    about = " in path.read_text()
]


@pytest.mark.parametrize("path", PROTOCOL_FILES, ids=shown(PROTOCOL_FILES))
def test_every_protocol_is_registered(path: Path) -> None:
    assert module_of(path) in {protocol.__module__ for protocol in PROTOCOLS.values()}


@pytest.mark.parametrize("name", PROTOCOLS)
def test_every_protocol_says_what_it_is(name: str) -> None:
    about = PROTOCOLS[name].about
    assert about.name == name
    assert about.paper
    assert about.cost
    assert about.kind in ("token", "permission", "quorum")


def mutants_in(path: Path) -> int:
    """How many mutants a test file tries: entries of its tables, and single calls of `mutant` with words in them."""
    count = 0
    for found in ast.walk(ast.parse(path.read_text())):
        if isinstance(found, ast.Assign) and isinstance(found.value, ast.Dict):
            count += len(found.value.keys)
        elif isinstance(found, ast.Call) and isinstance(found.func, ast.Name) and found.func.id == "mutant":
            count += isinstance(found.args[1], ast.Constant)
    return count


@pytest.mark.parametrize("path", PROTOCOL_FILES, ids=shown(PROTOCOL_FILES))
def test_every_protocol_has_mutants(path: Path) -> None:
    """In a file of its own, or in that of the protocol which it extends: test_e2e.py for e2e_ft."""
    words = [name.split("_") for name, protocol in PROTOCOLS.items() if protocol.__module__ == module_of(path)]
    names = {"_".join(each[:many]) for each in words for many in range(1, len(each) + 1)}
    files = [ROOT / "tests" / "mutants" / f"test_{name}.py" for name in names]
    assert sum([mutants_in(mutants) for mutants in files if mutants.exists()]) >= 3


MACHINE = re.compile(r"(?<![\w.~}])/(?:home|Users|root|work|mnt|opt|private|tmp)/\w")


def committed() -> Iterator[Path]:
    """Everything a person reads or runs, but for this file, which has to say what it looks for."""
    for folder in ("src", "tests", "bench", "docs", "papers", "examples"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".py", ".pyx", ".pxd", ".md", ".txt", ".toml", ".sh") and path != Path(__file__):
                yield path
    yield from (path for path in sorted(ROOT.iterdir()) if path.is_file() and path.suffix in (".py", ".md", ".toml"))
    yield ROOT / "Makefile"


def test_no_path_of_anybodys_machine_stands_anywhere() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in committed()
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if MACHINE.search(line) and "egg-info" not in str(path)
    ]
    assert found == []
