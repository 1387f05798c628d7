"""Finds and runs the code blocks of a Markdown page, in order.

    sh        a bash script, run with `set -e`
    console   lines after `$ ` are commands, the others their expected output; `...` matches anything
    python    all blocks of a page share one process and one namespace; `await` and `async with` work at the top level

All blocks of a page run in one temporary directory, with a runtime directory of its own. Blocks in the languages of
`SHOWN` are not run. An HTML comment directly before a block may add to this:

    <!-- setup: ... -->     lines that are run first, in the same language, and not shown to readers
    <!-- exit 3 -->         the expected exit code of its last command, if it is not 0
    <!-- file: name -->     the block is the content of this file: it is written, not run
    <!-- not run: why -->   it needs another host, root, a terminal, or minutes
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

RUN = ("sh", "console", "python")
SHOWN = ("text", "toml", "ini", "json", "yaml", "crontab")
LONGEST = 60.0  # seconds for one command or one python block
DRIVER = Path(__file__).parent / "python_driver.py"

BLOCK = re.compile(
    r"(?P<notes>(?:^[ ]*<!--(?:(?!-->).)*-->\n)*)"
    r"^(?P<indent>[ ]*)```(?P<language>[^\n]*)\n(?P<body>.*?)^(?P=indent)```$",
    re.DOTALL | re.MULTILINE,
)
NOTE = re.compile(r"<!--\s*(setup:|exit|file:|not run:)(.*?)-->", re.DOTALL)


@dataclass(frozen=True)
class Block:
    line: int
    language: str
    body: str
    setup: str = ""
    exit_code: int = 0
    file: str = ""
    not_run: str = ""
    start: int = 0  # of its body, in the text of the page
    end: int = 0


class BlockFailed(Exception):
    """A block did not do what its page says."""


def blocks(text: str) -> Iterator[Block]:
    for found in BLOCK.finditer(text):
        notes = {name.rstrip(":"): value.strip() for name, value in NOTE.findall(found["notes"])}
        yield Block(
            line=text.count("\n", 0, found.start("language")) + 1,
            language=found["language"].strip(),
            body=found["body"],
            setup=notes.get("setup", ""),
            exit_code=int(notes.get("exit", 0)),
            file=notes.get("file", ""),
            not_run=notes.get("not run", ""),
            start=found.start("body"),
            end=found.end("body"),
        )


def commands(body: str) -> Iterator[tuple[str, str]]:
    """The commands of a console block, each with its expected output."""
    parts = re.split(r"^\$ (.*)\n?", body, flags=re.MULTILINE)
    if parts[0].strip():
        raise BlockFailed("a console block begins with a command: `$ ...`")
    yield from zip(parts[1::2], parts[2::2], strict=True)


def tidy(output: str) -> str:
    return "\n".join(line.rstrip() for line in output.splitlines()).strip("\n")


def matches(expected: str, output: str) -> bool:
    pattern = ".*".join(re.escape(part) for part in tidy(expected).split("..."))
    return re.fullmatch(pattern, tidy(output), re.DOTALL) is not None


class PageRunner:
    """Runs the blocks of one page. Use it as a context manager: it ends the page's Python process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        bin_folder = Path(sys.executable).parent
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("COLUMNS", "FAIRGATE_DIR"))},
            "FAIRGATE_DIR": str(folder / "run"),
            "HOME": str(folder),
            "PATH": f"{bin_folder}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(folder / "page"),
            "TERM": "dumb",
        }
        self.python: subprocess.Popen[str] | None = None
        self.work = folder / "page"
        self.work.mkdir()

    def __enter__(self) -> PageRunner:
        return self

    def __exit__(self, *_: object) -> None:
        if self.python is not None:
            self.python.kill()
            self.python.communicate()

    def run(self, block: Block) -> str:
        """Run the block. Returns its body, with the real output if it is a console block without `...`.

        Raises BlockFailed if it has another exit code or output than the page says.
        """
        if block.file:
            (self.work / block.file).write_text(block.body, encoding="utf-8")
        elif block.language == "sh":
            self.bash(f"set -e\n{block.setup}\n{block.body}", block.exit_code)
        elif block.language == "console":
            return self.console(block)
        else:
            self.run_python(f"{block.setup}\n{block.body}" if block.setup else block.body, block.line)
        return block.body

    def bash(self, script: str, expected: int) -> str:
        """The script's output. What it left running is killed."""
        process = subprocess.Popen(
            ["bash", "-c", script],
            cwd=self.work,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            output, _ = process.communicate(timeout=LONGEST)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
            raise BlockFailed(f"still running after {LONGEST:g} s:\n{script}\n{output}") from None
        if process.returncode != expected:
            raise BlockFailed(f"exit code {process.returncode}, not {expected}:\n{script}\n{output}")
        return output

    def console(self, block: Block) -> str:
        shown = ""
        each = list(commands(block.body))
        for number, (command, expected) in enumerate(each, 1):
            last = number == len(each)
            output = self.bash(f"{block.setup}\n{command}", block.exit_code if last else 0)
            if "..." in expected:
                shown += f"$ {command}\n{expected}"
                if not matches(expected, output):
                    raise BlockFailed(f"$ {command}\nexpected:\n{tidy(expected)}\ngot:\n{tidy(output)}")
            else:
                lines = tidy(output)
                shown += f"$ {command}\n" + (f"{lines}\n" if lines else "")
        return shown

    def run_python(self, source: str, line: int) -> None:
        if self.python is None:
            self.python = subprocess.Popen(
                [sys.executable, str(DRIVER), str(LONGEST)],
                cwd=self.work,
                env=self.environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        assert self.python.stdin is not None
        assert self.python.stdout is not None
        print(json.dumps([source, f"block of line {line}"]), file=self.python.stdin, flush=True)
        answer = self.python.stdout.readline()
        failure = json.loads(answer) if answer else f"the process ended with exit code {self.python.wait()}"
        if failure:
            raise BlockFailed(failure)
