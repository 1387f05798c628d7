"""What `fairgate run x -- true` imports: a user's command waits for all of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

# Standard modules beside those that Python itself has imported at its start. What these import in turn differs from
# version to version, and is allowed too. The slow ones are `signal` and `ctypes`.
ALLOWED = (
    "__future__", "atexit", "collections.abc", "contextlib", "ctypes", "errno", "fcntl", "mmap", "select", "signal",
    "threading",
)  # fmt: skip
COMPILED = ("_cython_", "_cyutility", "cython_runtime")  # what compiled modules bring with them
OURS = {"fairgate", "_cyutility", "arguments", "cli", "command", "core", "errors", "once", "room"}
RUN = """
from fairgate.cli.run.command import run_arguments
code = run_arguments(["x", "--", "true"])
assert code == 0
"""


def imported_by(code: str, folder: Path) -> set[str]:
    """The modules that this code imports in a new process."""
    reporting = f"import sys\nbefore = set(sys.modules)\n{code}\nprint(*set(sys.modules) - before)"
    environ = {"FAIRGATE_DIR": str(folder), "PYTHONPATH": str(Path(__file__).parents[2] / "src")}
    words = [sys.executable, "-c", reporting]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=30, env=environ)
    return set(done.stdout.split())


def test_only_what_is_needed(tmp_path: Path) -> None:
    allowed = imported_by(f"import {', '.join(ALLOWED)}", tmp_path)
    for _ in range(2):  # the first one also creates the gate, and what else is done once a day
        found = imported_by(RUN, tmp_path)
    names = {name for name in found if not name.startswith(COMPILED)}
    ours = {name for name in names if name.partition(".")[0] == "fairgate"}
    assert names - ours - allowed == set()
    assert {[*name.split("."), "fairgate"][1] for name in ours} <= OURS
    assert {name for name in ours if name.startswith("fairgate.core.")} <= {"fairgate.core.fences"}
