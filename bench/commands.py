"""Commands inside a gate, beside flock(1), GNU sem and the library filelock: `make bench-commands`.

1. one command alone: what it costs to pass through a free gate
2. many commands at once, one at a time through the gate
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.table import Table

AT_ONCE = 50
ALONE = 10
FILELOCK = "import sys, subprocess, filelock\nwith filelock.FileLock(sys.argv[1]): subprocess.run(['true'])"
START = "import subprocess; subprocess.run(['true'])"


def contenders(folder: str) -> dict[str, list[str]]:
    fairgate = str(Path(sys.executable).parent / "fairgate")
    found = {
        "python3 alone, no gate": [sys.executable, "-c", START],
        "fairgate run": [fairgate, "run", "bench", "--", "true"],
        "filelock": [sys.executable, "-c", FILELOCK, f"{folder}/filelock"] if find_spec("filelock") else [],
        "flock(1)": ["flock", f"{folder}/flock", "true"] if shutil.which("flock") else [],
        "GNU sem": ["sem", "--id", "bench", "--fg", "-j1", "true"] if shutil.which("sem") else [],
    }
    return {name: words for name, words in found.items() if words}


def alone(words: list[str]) -> float:
    """Median seconds of one command."""
    taken = []
    for _ in range(ALONE):
        began = time.perf_counter()
        subprocess.run(words, check=True, capture_output=True)
        taken.append(time.perf_counter() - began)
    return median(taken)


def at_once(words: list[str]) -> tuple[float, int]:
    """Seconds until all have ended, and how many failed."""
    began = time.perf_counter()
    quiet = subprocess.DEVNULL
    running = [subprocess.Popen(words, stdin=quiet, stdout=quiet, stderr=quiet) for _ in range(AT_ONCE)]
    failed = sum(process.wait() != 0 for process in running)
    return time.perf_counter() - began, failed


def main() -> None:
    table = Table("", "one alone", f"{AT_ONCE} at once", "failed", title_justify="left")
    with TemporaryDirectory(prefix="bench") as folder:
        os.environ |= {"FAIRGATE_DIR": f"{folder}/run", "HOME": folder}
        for name, words in contenders(folder).items():
            one = alone(words)
            seconds, failed = at_once(words)
            table.add_row(name, f"{one * 1e3:.1f} ms", f"{seconds:.2f} s", str(failed))
    Console().print(table)


if __name__ == "__main__":
    main()
