"""The contents of source distributions and wheels, and that a wheel runs compiled on a machine without a compiler."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from fairgate import __version__

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src"
QUICK = {**os.environ, "FAIRGATE_NO_COMPILE": "1"}
IN_A_WHEEL = {".py", ".so", ".typed"}
RUNS_COMPILED = """
import pathlib, sys, fairgate
from importlib import import_module
from fairgate.sim.run import kind_of_build
here = pathlib.Path(fairgate.__file__).parent
for file in sorted(here.rglob("*.so")):
    name = ".".join(("fairgate", *file.relative_to(here).parts)).partition(".cpython")[0]
    assert import_module(name).__file__ == str(file), name
print(kind_of_build(), sys.prefix in str(here))
"""


def sources(*endings: str) -> set[str]:
    return {path.relative_to(SRC).as_posix() for path in SRC.rglob("*") if path.suffix in endings}


def setup(*command: str) -> None:
    """Run setup.py without compiling. It writes only to the folder that the command names."""
    subprocess.run([sys.executable, "setup.py", "--quiet", *command], cwd=ROOT, env=QUICK, check=True)


def test_a_wheel_contains_every_module_and_no_build_files(tmp_path: Path) -> None:
    setup("build_py", "--build-lib", str(tmp_path))
    found = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()}
    assert found == sources(".py", ".typed")


def test_a_source_distribution_contains_all_sources_and_no_build_products(tmp_path: Path) -> None:
    setup("egg_info", "--egg-base", str(tmp_path))
    listed = (tmp_path / "fairgate.egg-info" / "SOURCES.txt").read_text().split()
    found = {name.removeprefix("src/") for name in listed if name.startswith("src/fairgate/")}
    assert sources(".py", ".pxd", ".pyx", ".typed") <= found
    assert [name for name in listed if name.endswith((".c", ".so", ".pyc"))] == []
    assert {"setup.py", "pyproject.toml", "README.md", "LICENSE"} <= set(listed)


def wheel() -> Path:
    found = sorted((ROOT / "dist").glob(f"fairgate-{__version__}-cp*.whl"))
    if not found:
        pytest.skip("there is no compiled wheel in dist/: run make wheel")
    return found[-1]


@pytest.mark.stress
def test_the_compiled_wheel_contains_only_what_is_needed_to_run() -> None:
    names = [name for name in zipfile.ZipFile(wheel()).namelist() if ".dist-info/" not in name]
    assert {Path(name).suffix for name in names} == IN_A_WHEEL
    assert {name for name in names if name.endswith(".py")} == sources(".py")
    compiled = {name.partition(".cpython")[0] for name in names if name.endswith(".so")}
    assert {name.removesuffix(".pxd") for name in sources(".pxd")} <= compiled


@pytest.mark.stress
def test_the_wheel_runs_compiled_without_a_compiler(tmp_path: Path) -> None:
    made = tmp_path / "venv"
    venv.create(made, with_pip=True)
    alone = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "FAIRGATE", "CC"))}
    alone["PATH"] = str(made / "bin")  # no compiler in it

    def run(*command: str) -> str:
        command = (str(made / "bin" / command[0]), *command[1:])
        return subprocess.run(command, cwd=tmp_path, env=alone, check=True, capture_output=True, text=True).stdout

    run("pip", "install", "--quiet", "--only-binary", ":all:", str(wheel()))
    assert run("python", "-c", RUNS_COMPILED) == "compiled True\n"
    assert run("fairgate", "--version") == f"fairgate {__version__} (compiled)\n"
    run("fairgate", "sim", "fair_k", "--requests", "20")
