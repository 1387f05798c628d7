"""What `fairgate run x -- true` imports: a user's command waits for all of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

# Standard modules beside those that Python itself has imported at its start. The slow ones are `signal` and `ctypes`.
ALLOWED = {
    "__future__", "_collections", "_collections_abc", "_ctypes", "_functools", "_operator", "_struct", "_weakrefset",
    "atexit", "collections", "collections.abc", "contextlib", "ctypes", "ctypes._endian", "enum", "errno", "fcntl",
    "functools", "itertools", "keyword", "mmap", "operator", "reprlib", "select", "signal", "struct", "threading",
    "time", "types",
}  # fmt: skip
COMPILED = ("_cython_", "_cyutility", "cython_runtime")  # what compiled modules bring with them
OURS = {"fairgate", "_cyutility", "arguments", "cli", "command", "core", "errors", "room"}
RUN = """
import sys
before = set(sys.modules)
from fairgate.cli.run.command import run_arguments
code = run_arguments(["x", "--", "true"])
assert code == 0
print(*sorted(set(sys.modules) - before))
"""


def test_only_what_is_needed(tmp_path: Path) -> None:
    words = [sys.executable, "-c", RUN]
    environ = {"FAIRGATE_DIR": str(tmp_path), "PYTHONPATH": str(Path(__file__).parents[2] / "src")}
    for _ in range(2):  # the first one also creates the gate, and what else is done once a day
        done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=30, env=environ)
    names = {name for name in done.stdout.split() if not name.startswith(COMPILED)}
    ours = {name for name in names if name.partition(".")[0] == "fairgate"}
    assert names - ours - ALLOWED == set()
    assert {[*name.split("."), "fairgate"][1] for name in ours} <= OURS
    assert {name for name in ours if name.startswith("fairgate.core.")} <= {"fairgate.core.fences"}
