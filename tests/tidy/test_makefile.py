"""What make's targets set up and run, in a small tree whose Python only writes down how it is called."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PYTHON = """#!/bin/sh
echo "${FAIRGATE_PURE:+plain }${FAIRGATE_NO_COMPILE:+uncompiled }$(basename "$0") $*" >> "$CALLS"
case "$*" in "-m venv "*) mkdir -p "$3/bin" && cp "$0" "$3/bin/python" && cp "$0" "$3/bin/pip";; esac
"""
INSTALL = "uncompiled pip --quiet --disable-pip-version-check install --no-build-isolation --editable .[test,all]"
CYTHON = "pip --quiet --disable-pip-version-check install Cython=="  # tests of tools/ execute what they generate
HOT = "src/fairgate/core/derive.py"

pytestmark = pytest.mark.skipif(not shutil.which("make"), reason="there is no make")


class Tree:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.calls = root / "calls"
        for name in ("Makefile", "pyproject.toml", "setup.py"):
            shutil.copy(ROOT / name, root)
        for name in ("src", "tools"):
            shutil.copytree(
                ROOT / name, root / name, ignore=shutil.ignore_patterns("*.so", "__pycache__", "*.egg-info")
            )
        (root / "python").write_text(PYTHON)
        (root / "python").chmod(0o755)

    def make(self, *arguments: str) -> list[str]:
        """Run make; return how it called Python and pip, without the calls that only ask something."""
        self.calls.write_text("")
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("MAKE", "FAIRGATE"))}
        environment.pop("T", None)  # `make quick T=tests/tidy` passes it on to the tests
        command = ["make", "--silent", "PYTHON=./python", "TESTERS=3", *arguments]
        subprocess.run(command, cwd=self.root, env={**environment, "CALLS": str(self.calls)}, check=True)
        return [line for line in self.calls.read_text().splitlines() if " -c " not in line]


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def test_quick_on_a_fresh_clone_installs_what_it_needs_and_compiles_nothing(tree: Tree) -> None:
    called = tree.make("quick", "T=tests/room/test_api.py")
    assert called[0] == "python -m venv .venv"
    assert called[-3].startswith(CYTHON)
    assert called[-2:] == [INSTALL, "plain python -m pytest -n 3 tests/room/test_api.py"]
    assert not any("build_ext" in line for line in called)
    assert tree.make("quick", "T=tests/core") == ["plain python -m pytest -n 3 tests/core"]


def test_quick_runs_compiled_modules_only_if_they_are_up_to_date(tree: Tree) -> None:
    assert any("build_ext --inplace" in line for line in tree.make("build"))
    assert tree.make("quick", "T=tests/room") == ["python -m pytest -n 3 tests/room"]
    assert tree.make("quick") == ["python -m pytest -n 3"]
    newer = (tree.root / ".venv" / "built").stat().st_mtime + 1
    os.utime(tree.root / HOT, (newer, newer))
    assert tree.make("quick", "T=tests/room") == ["plain python -m pytest -n 3 tests/room"]
    assert tree.make("quick")[0].startswith("plain python -m pytest -n 3 tests/core tests/generic ")


def test_the_suite_runs_compiled_and_then_plain(tree: Tree) -> None:
    tree.make("build")
    compiled, plain = tree.make("suite")
    assert compiled == "python -m pytest -n 3"
    assert plain == tree.make("plain-suite")[0]
    assert plain.startswith("plain python -m pytest -n 3 tests/core tests/generic ")
