"""Draws docs/images/who.svg: `fairgate who` while eight commands share a gate of three.

Usage: python -m tools.picture. The processes are real, so pids and times differ in each picture.
"""

import os
import subprocess
import sys
import tempfile
import time
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

TARGET = Path(__file__).resolve().parent.parent / "docs" / "images" / "who.svg"
JOBS = 8
WIDTH = 100

# Rich's own frame, without the fonts that it would fetch from another host.
FRAME = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace;
  font-size: {char_height}px; line-height: {line_height}px; }}
.{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: sans-serif; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" /></clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def start_jobs(fairgate: str, folder: str) -> list[subprocess.Popen[bytes]]:
    script = Path(folder) / "train.sh"
    script.write_text("#!/bin/sh\nexec sleep 60\n", encoding="utf-8")
    script.chmod(0o755)
    jobs = []
    for number in range(1, JOBS + 1):
        words = [fairgate, "run", "gpu", "-k", "3", "--", "./train.sh", f"--run={number}"]
        jobs.append(subprocess.Popen(words, cwd=folder))
        time.sleep(0.4)
    return jobs


def who(fairgate: str) -> str:
    """The output of `fairgate who`, with its colours."""
    environment = {**os.environ, "FORCE_COLOR": "1", "COLUMNS": str(WIDTH), "TERM": "xterm-256color"}
    return subprocess.run([fairgate, "who"], env=environment, capture_output=True, text=True, check=True).stdout


def main() -> int:
    fairgate = str(Path(sys.executable).parent / "fairgate")
    with tempfile.TemporaryDirectory(prefix="picture") as folder:
        os.environ["FAIRGATE_DIR"] = f"{folder}/run"
        jobs = start_jobs(fairgate, folder)
        try:
            said = who(fairgate)
        finally:
            for job in jobs:
                job.terminate()
            for job in jobs:
                job.wait()
    console = Console(record=True, width=WIDTH, file=StringIO())
    console.print(Text("$ fairgate who", style="bold green"))
    console.print(Text.from_ansi(said.rstrip()))
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text(console.export_svg(title="fairgate", theme=MONOKAI, code_format=FRAME), encoding="utf-8")
    print(f"wrote {TARGET.relative_to(Path.cwd())}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
