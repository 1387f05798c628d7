"""On a free-threaded Python that runs without the global interpreter lock, `import fairgate` is refused in one line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SRC = Path(__file__).parents[1] / "src"
WITHOUT_LOCK = "import sys; sys._is_gil_enabled = lambda: {enabled}\n"


def imported(code: str) -> tuple[int, str]:
    words = [sys.executable, "-c", code]
    done = subprocess.run(words, capture_output=True, text=True, check=False, env={"PYTHONPATH": str(SRC)}, timeout=30)
    return done.returncode, done.stderr.strip().rpartition("\n")[2]


@pytest.mark.parametrize("module", ["fairgate", "fairgate.sync", "fairgate.cli"])
def test_it_is_refused_without_the_lock(module: str) -> None:
    assert imported(f"{WITHOUT_LOCK.format(enabled=False)}import {module}") == (
        1,
        "ImportError: fairgate needs the global interpreter lock: set PYTHON_GIL=1, or use a Python that has it",
    )


@pytest.mark.parametrize("how", ["script", "module"])
def test_the_command_is_refused_in_one_line(how: str, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(WITHOUT_LOCK.format(enabled=False))
    script = tmp_path / "fairgate"
    script.write_text("import sys\nfrom fairgate.cli import main\nsys.exit(main())\n")
    words = [sys.executable, *([str(script)] if how == "script" else ["-m", "fairgate"]), "who"]
    environ = {"PYTHONPATH": f"{tmp_path}:{SRC}"}
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=environ, timeout=30)
    line = "fairgate: needs the global interpreter lock: set PYTHON_GIL=1, or use a Python that has it\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", line)


def test_it_is_imported_with_the_lock() -> None:
    assert imported(f"{WITHOUT_LOCK.format(enabled=True)}import fairgate.sync") == (0, "")
