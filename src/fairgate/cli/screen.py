"""Output helpers: consoles, a progress bar, plain tables and readable numbers."""

import os
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

PIPED_WIDTH = 100  # columns, if stdout is not a terminal
REDRAW = 0.1  # seconds


class Screen(Console):
    def on_broken_pipe(self) -> None:
        raise  # noqa: PLE0704  (rich calls this while handling the error, and would exit otherwise)


def stdout() -> Console:
    return Screen(width=width(), highlight=False)


def stderr() -> Console:
    return Screen(stderr=True, highlight=False, soft_wrap=True)


def width() -> int | None:
    """The width of tables; None for the width of the terminal."""
    return None if sys.stdout.isatty() or os.environ.get("COLUMNS") else PIPED_WIDTH


def line_width() -> int:
    return width() or shutil.get_terminal_size().columns


def can_draw() -> bool:
    """Can stdout show the characters of drawings?"""
    return (sys.stdout.encoding or "").lower().replace("-", "").startswith("utf")


def warn(what: str) -> None:
    stderr().print(f"note: {what}", style="yellow", markup=False)


class Report(Protocol):
    def __call__(self, amount: int, of: int | None = None) -> None: ...


@contextmanager
def progress_bar(title: str, total: int) -> Iterator[Report]:
    """Yields a function that sets how much is done, and of how much if that changes. It draws only on a terminal.

    It is redrawn by that function and not by a thread: trials fork, and a lock that a thread holds at that moment would
    stay locked in the child.
    """
    console = stderr()
    hidden = not sys.stderr.isatty() or console.is_dumb_terminal
    times = (TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn())
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), *times)
    with Progress(*columns, console=console, transient=True, auto_refresh=False, disable=hidden) as progress:
        task = progress.add_task(title, total=total)
        progress.refresh()
        drawn = time.monotonic()

        def done(amount: int, of: int | None = None) -> None:
            nonlocal drawn
            progress.update(task, completed=amount, total=of)
            if time.monotonic() - drawn >= REDRAW:
                progress.refresh()
                drawn = time.monotonic()

        yield done


def plain_table(title: str | Text | None = None) -> Table:
    return Table(
        title=title, title_style="bold", title_justify="left", box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False
    )


def number(value: float) -> str:
    """About four digits: 0.1234, 12.35, 123.4, 12,346."""
    if isinstance(value, int) or value == 0 or abs(value) >= 1000:
        return f"{value:,.0f}"
    for bound, digits in ((100, 1), (0.995, 2), (0.1, 3)):
        if abs(value) >= bound:
            return f"{value:.{digits}f}"
    return f"{value:.2g}"


def counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def seconds(value: float) -> str:
    return f"{number(value)} s"
