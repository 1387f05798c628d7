"""What people see of gates: the table of one gate, a screen that is updated, and the question of `break`."""

import logging
import os
import select
import sys
import termios
import tty
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import typer
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.live import Live
from rich.segment import Segment, Segments
from rich.text import Text

from fairgate.arguments import printable
from fairgate.cli.screen import line_width, plain_table, stdout
from fairgate.errors import BadInput

REFRESH_SECONDS = 0.5
NEEDS = {"fence": 80, "host": 60, "user": 60}  # columns that only terminals of this width have room for
RIGHT = ("slot", "for", "pid")
SOMETIMES = ("state", "lease left")  # columns that are left out if no row has anything there
NONE = "-"
WAITS = "waits"


class Row(NamedTuple):
    cells: dict[str, str]  # by the name of the column
    style: str


def gate_table(title: str, rows: Sequence[Row]) -> RenderableType:
    """One line for each holder and waiter; only the title if there are none."""
    heading = Text(printable(title), style="bold")  # not the table's own title, which must not be wider than the table
    if not rows:
        return heading
    table = plain_table()
    names = [name for name in rows[0].cells if line_width() >= NEEDS.get(name, 0) and not is_empty(name, rows)]
    for name in names:
        table.add_column(name, justify="right" if name in RIGHT else "left", no_wrap=name != "note")
    for row in rows:
        table.add_row(*[cell(name, row.cells[name]) for name in names], style=row.style)
    return Group(heading, table)


def is_empty(name: str, rows: Sequence[Row]) -> bool:
    return name in SOMETIMES and all(row.cells[name] == NONE for row in rows)


def cell(name: str, text: str) -> Text:
    if name == "note":
        return Text(printable(" ".join(text.split())), no_wrap=True, overflow="ellipsis")
    return Text(printable(text))


def below_each_other(parts: Sequence[RenderableType]) -> Group:
    """With an empty line between two of them."""
    return Group(*[each for part in parts for each in ("", part)][1:])


def confirmed(taken: str, note: str) -> bool:
    """Ask whether to revoke a permit; `taken` says whose. Raises BadInput if nobody can be asked."""
    if not sys.stdin.isatty():
        raise BadInput("break asks for confirmation, but stdin is not a terminal: use --yes")
    print(f"{taken}: {printable(note)}")
    return typer.confirm("Another process may enter while this one is still running. Revoke its permit?")


# A screen that is updated.


class Screen:
    """The alternate screen of the terminal. Press q to quit."""

    def __init__(self, live: Live) -> None:
        self.live = live

    def show(self, whole: RenderableType) -> bool:
        """Show this for a moment. Returns False if q was pressed."""
        self.live.update(Fitted(whole), refresh=True)
        return "q" not in pressed(REFRESH_SECONDS)


@contextmanager
def screen() -> Iterator[Screen]:
    logging.disable(logging.WARNING)
    with keys(), Live(console=stdout(), screen=True, auto_refresh=False) as live:
        yield Screen(live)


class Fitted:
    """Cuts what it shows to the height of the screen. The last line says how many lines are missing."""

    def __init__(self, whole: RenderableType) -> None:
        self.whole = whole

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lines = console.render_lines(self.whole, options.update(height=None), pad=False)
        over = len(lines) - console.height
        for line in lines if over <= 0 else lines[: console.height - 1]:
            yield Segments([*line, Segment.line()])
        if over > 0:
            yield Text(f"+{over + 1} more lines", style="yellow", end="")


@contextmanager
def keys() -> Iterator[None]:
    """Read keys one at a time and without echo, until the end of the context."""
    before = termios.tcgetattr(sys.stdin)
    tty.setcbreak(sys.stdin)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def pressed(within: float) -> str:
    """The keys pressed within this many seconds, or an empty string."""
    ready, _, _ = select.select([sys.stdin], [], [], within)
    return os.read(sys.stdin.fileno(), 100).decode(errors="replace").lower() if ready else ""
