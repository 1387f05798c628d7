"""What the build says about itself."""

from __future__ import annotations

import os
import runpy
from pathlib import Path
from typing import Any

import pytest
from setuptools import Distribution, Extension

SETUP = runpy.run_path(str(Path(__file__).parents[2] / "setup.py"))

pytestmark = pytest.mark.skipif(bool(SETUP["why_not"]()), reason="nothing can be compiled here")


class Build:
    """Two modules that the tests compile."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in "ab":
            (folder / f"{name}.c").write_text(f"int {name};\n")

    def run(self) -> None:
        modules = [Extension(f"fairgate.{name}", [str(self.folder / f"{name}.c")]) for name in "ab"]
        command: Any = SETUP["Compile"](Distribution({"ext_modules": modules}))
        command.build_lib, command.build_temp = str(self.folder / "lib"), str(self.folder / "temp")
        command.ensure_finalized()
        command.run()

    def touch(self, name: str) -> None:
        """Make this source newer than what was compiled from it."""
        [module] = (self.folder / "lib" / "fairgate").glob(f"{name}.*.so")
        newer = module.stat().st_mtime + 1
        os.utime(self.folder / f"{name}.c", (newer, newer))


@pytest.fixture
def build(tmp_path: Path) -> Build:
    return Build(tmp_path)


def test_a_build_names_the_modules_that_it_compiles(build: Build, capfd: pytest.CaptureFixture[str]) -> None:
    build.run()
    assert "fairgate: compiling 2 of 2 modules: a, b\n" in capfd.readouterr().err
    build.run()
    assert "fairgate: all 2 modules are compiled already\n" in capfd.readouterr().err
    build.touch("b")
    build.run()
    assert "fairgate: compiling 1 of 2 modules: b\n" in capfd.readouterr().err


def test_a_long_build_says_how_far_it_is(
    build: Build, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SETUP["Compile"].build_extension.__globals__, "PAUSE", 0.0)
    build.run()
    said = capfd.readouterr().err
    assert "fairgate: compiled 1 of 2\nfairgate: compiled 2 of 2\n" in said


def test_a_long_list_of_modules_is_cut() -> None:
    names = [f"fairgate.core.m{number}" for number in range(1, 13)]
    assert SETUP["announcement"](names, 130) == (
        "compiling 12 of 130 modules: core.m1, core.m2, core.m3, core.m4, core.m5, core.m6, core.m7, core.m8 and 4 more"
    )
