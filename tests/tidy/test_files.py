"""Rules that every source file follows. test_imports.py has the rules for imports."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairgate.registry import PROTOCOLS
from tests.tidy.imports import PACKAGE, package_of

ROOT = PACKAGE.parents[1]
FILES = sorted(PACKAGE.rglob("*.py"))


def module_of(path: Path) -> str:
    return ".".join(["fairgate", *path.relative_to(PACKAGE).with_suffix("").parts])


def shown(paths: list[Path]) -> list[str]:
    return [str(path.relative_to(PACKAGE)) for path in paths]


@pytest.mark.parametrize("path", FILES, ids=shown(FILES))
def test_every_module_has_a_docstring(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text()))


def test_every_pxd_has_a_source_next_to_it() -> None:
    lonely = [
        pxd
        for pxd in PACKAGE.rglob("*.pxd")
        if not (pxd.with_suffix(".py").exists() or pxd.with_suffix(".pyx").exists())
    ]
    assert lonely == []


def test_every_pyx_has_a_plain_twin_and_a_pxd() -> None:
    """The twin is what runs where nothing can be compiled."""
    for pyx in PACKAGE.rglob("*.pyx"):
        assert pyx.with_suffix(".py").exists()
        assert pyx.with_suffix(".pxd").exists()


PROTOCOL_FILES = [  # without files that hold a part of a protocol: its messages, or one side of it
    path for path in FILES if package_of(path) == "protocols" and "\n    about = " in path.read_text()
]


@pytest.mark.parametrize("path", PROTOCOL_FILES, ids=shown(PROTOCOL_FILES))
def test_every_protocol_is_registered(path: Path) -> None:
    registered = {protocol.__module__ for protocol in PROTOCOLS.values()}
    assert module_of(path) in registered, "add it to PROTOCOLS in src/fairgate/registry.py"


@pytest.mark.parametrize("name", PROTOCOLS)
def test_every_protocol_describes_itself(name: str) -> None:
    about = PROTOCOLS[name].about
    assert about.name == name
    assert about.paper
    assert about.cost
    assert about.kind in ("token", "permission", "quorum")


def mutants_in(path: Path) -> int:
    """How many mutants a test file tries: entries of its tables, and calls of `mutant` with a literal text."""
    count = 0
    for found in ast.walk(ast.parse(path.read_text())):
        if isinstance(found, ast.Assign) and isinstance(found.value, ast.Dict):
            count += len(found.value.keys)
        elif isinstance(found, ast.Call) and isinstance(found.func, ast.Name) and found.func.id == "mutant":
            count += isinstance(found.args[1], ast.Constant)
    return count


@pytest.mark.parametrize("path", PROTOCOL_FILES, ids=shown(PROTOCOL_FILES))
def test_every_protocol_has_mutants(path: Path) -> None:
    """They are in a file of its own, or in that of the protocol it extends: test_e2e.py for e2e_ft."""
    words = [name.split("_") for name, protocol in PROTOCOLS.items() if protocol.__module__ == module_of(path)]
    names = {"_".join(each[:many]) for each in words for many in range(1, len(each) + 1)}
    files = [ROOT / "tests" / "mutants" / f"test_{name}.py" for name in names]
    found = sum([mutants_in(mutants) for mutants in files if mutants.exists()])
    assert found >= 3, f"add mutants to tests/mutants/test_{'_'.join(words[0])}.py"


MACHINE = re.compile(r"(?<![\w.~}])/(?:home|Users|root|work|mnt|opt|private|tmp)/(?!fairgate-UID|fairgate-USER)\w")


def committed() -> Iterator[Path]:
    """Everything that people read or run, except this file, which must contain what it searches for."""
    for folder in ("src", "tests", "bench", "docs", "papers", "examples"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".py", ".pyx", ".pxd", ".md", ".txt", ".toml", ".sh") and path != Path(__file__):
                yield path
    yield from (path for path in sorted(ROOT.iterdir()) if path.is_file() and path.suffix in (".py", ".md", ".toml"))
    yield ROOT / "Makefile"


def test_no_file_contains_an_absolute_path() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in committed()
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if MACHINE.search(line) and "egg-info" not in str(path)
    ]
    assert found == []
