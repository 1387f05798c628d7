"""`fairgate who`, `top` and `break`: inspect the gates of this host or of a cluster, and revoke a permit."""

import json
import logging
import os
import select
import sys
import termios
import time
import tty
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.live import Live
from rich.segment import Segment, Segments
from rich.table import Table
from rich.text import Text

from fairgate.cli.exits import complain, log_as_complaints
from fairgate.cli.network.options import INSPECT_OPTIONS
from fairgate.cli.network.settings import NetworkSettings
from fairgate.cli.network.typer_options import network_options
from fairgate.cli.screen import counted, line_width, plain_table, seconds, stdout
from fairgate.errors import BadInput
from fairgate.live.directory import Directory
from fairgate.live.inspect import GatePicture, Inspector, ListedPerson, Picture, look, run
from fairgate.live.on_host import HostMembership

REFRESH_SECONDS = 0.5
NEEDS = {"fence": 80, "host": 60}  # columns of the table that only terminals of this width have room for
RIGHT = ("slot", "for", "pid")
NONE = "-"
NOTHING = "no gate is open here"
IF_DEAD = "if it is dead, stop all peers and create the cluster again"


def slot_number(word: str) -> int:
    if not word.isdecimal():
        raise typer.BadParameter(f"it must be a number, as `fairgate who` shows it, not {word!r}")
    return int(word)


GateName = Annotated[
    str | None, typer.Argument(metavar="GATE", show_default=False, help="Show only this gate. Default: all gates.")
]
OneGate = Annotated[str, typer.Argument(metavar="GATE", help="Name of the gate.")]
Slot = Annotated[
    int,
    typer.Argument(
        metavar="SLOT",
        parser=slot_number,
        help="Slot as shown by `fairgate who`, or the pid if the protocol has no slots.",
    ),
]


# who.


@network_options(*INSPECT_OPTIONS)
def who_command(
    network: NetworkSettings,
    gate: GateName = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the result as one JSON object. Times are seconds since 1970.")
    ] = False,
) -> int:
    """List who is inside the gates of this host or of a cluster, and who is waiting.

    Without --join or --mdns, these are the gates of this host. Looking does
    not join the cluster and does not disturb its peers.

        fairgate who

        fairgate who gpu --join 10.0.0.5:7400
    """
    log_as_complaints()
    directory = network.directory()
    picture = chosen(look(directory), gate)
    if as_json:
        print(json.dumps(for_programs(picture, directory)))
    else:
        stdout().print(shown(picture, gate, directory))
    return 0


def chosen(picture: Picture, gate: str | None) -> Picture:
    """The picture restricted to one gate, or all of it."""
    return Picture(tuple([one for one in picture.gates if gate in (None, one.name)]), picture.peers)


def for_programs(picture: Picture, directory: Directory) -> dict[str, Any]:
    """The picture for --json. Times are seconds since 1970; internal ids and addresses are left out."""

    def plain(one: Any, left_out: tuple[str, ...]) -> dict[str, Any]:
        return {name: value for name, value in asdict(one).items() if name not in left_out}

    gates = []
    for gate in picture.gates:
        told = asdict(gate)
        for name in ("inside", "waiting"):
            told[name] = [plain(one, ("ident", "peer")) for one in getattr(gate, name)]
        told["silent"] = [{"pid": peer.pid, "host": peer.host} for peer in gate.silent]
        gates.append(told)
    return {**directory.named(), "guarantee": directory.guarantee, "peers": picture.peers, "gates": gates}


def shown(picture: Picture, gate: str | None, directory: Directory) -> Group | Text:
    there = f"{counted(picture.peers, 'peer')} {directory.where()}"
    if not picture.gates:
        open_ones = NOTHING if gate is None else f"no gate {gate} is open here"
        return Text(f"{open_ones} ({there})")
    parts: list[Any] = []
    for one in picture.gates:
        parts += ["", *gate_shown(one)] if parts else gate_shown(one)
    if directory.guarantee != HostMembership.guarantee:
        parts += ["", Text(f"{there}, guarantee: {directory.guarantee} (the permits of a killed peer stay taken)")]
    return Group(*parts)


def gate_shown(gate: GatePicture) -> list[Any]:
    title = f"{gate.name}: {len(gate.inside)} of {gate.k} inside, {len(gate.waiting)} waiting ({gate.protocol})"
    if gate.silent:
        missing = f"{counted(len(gate.silent), 'peer')} {'does' if len(gate.silent) == 1 else 'do'} not answer"
        title = (
            f"{gate.name}: at least {len(gate.inside)} of {gate.k} inside, at least {len(gate.waiting)} waiting"
            f" ({missing}; {gate.protocol})"
        )
    table = plain_table(title)
    names = ("slot", "for", "pid", "host", "fence", "lease left", "note")
    for name in [name for name in names if line_width() >= NEEDS.get(name, 0)]:
        table.add_column(name, justify="right" if name in RIGHT else "left", no_wrap=name != "note")
    now = time.time()
    for one in gate.inside:
        add_row(table, NONE if one.slot is None else str(one.slot), one, now)
    for one in gate.waiting:
        add_row(table, "waits", one, now)
    parts: list[Any] = [table if table.rows else Text(title, style="bold")]
    for peer in gate.silent:
        silent = f"pid {peer.pid} on {peer.host} does not answer; it may be stopped. What it holds is unknown."
        parts.append(Text(silent, style="yellow"))
    return parts


def add_row(table: Table, where: str, one: ListedPerson, now: float) -> None:
    cells: dict[str, str | Text] = {
        "slot": where,
        "for": seconds(round(max(now - one.since, 0.0), 1)),
        "pid": f"group {one.pid}" if one.ghost else str(one.pid),
        "host": one.host,
        "fence": NONE if one.fence is None else str(one.fence),
        "lease left": NONE if one.deadline is None else seconds(max(one.deadline - now, 0.0)),
        "note": Text(" ".join(one.note.split()), no_wrap=True, overflow="ellipsis"),
    }
    style = "yellow" if one.ghost else ("dim" if where == "waits" else "")
    table.add_row(*[cells[str(column.header)] for column in table.columns], style=style)


# top.


@network_options(*INSPECT_OPTIONS)
def top_command(network: NetworkSettings, gate: GateName = None) -> int:
    """Show who is inside and who is waiting, like `fairgate who`, updated twice a second.

    It needs a terminal. Press q or Ctrl-C to quit.

    Examples:

        fairgate top

        fairgate top gpu --join 10.0.0.5:7400
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise BadInput("top needs a terminal: use fairgate who instead")
    log_as_complaints()
    return run(watch(network.directory(), gate))


async def watch(directory: Directory, gate: str | None) -> int:
    async with Inspector(directory) as asker:
        picture = await asker.look()  # errors are reported before the screen is taken over
        logging.disable(logging.WARNING)
        with keys(), Live(console=stdout(), screen=True, auto_refresh=False) as live:
            while True:
                live.update(Fitted(shown(chosen(picture, gate), gate, directory)), refresh=True)
                if "q" in pressed(REFRESH_SECONDS):
                    return 0
                picture = await asker.look()


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


# break.


@network_options(*INSPECT_OPTIONS)
def break_command(
    network: NetworkSettings,
    gate: OneGate,
    slot: Slot,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
) -> int:
    """Revoke the permit of the process in a slot, when nothing else frees the slot.

    The holder is told that its permit is lost, and `fairgate run` terminates
    its command. Until the holder has stopped, it and the next one are inside
    at the same time.

    Processes that outlived their fairgate cannot be told and go on running:
    kill them first. `fairgate who` shows their process group.

        fairgate break gpu 2

        fairgate break gpu 2 --join 10.0.0.5:7400
    """
    log_as_complaints()
    return run(broken(network.directory(), gate, slot, yes))


async def broken(directory: Directory, name: str, slot: int, yes: bool) -> int:
    async with Inspector(directory) as asker:
        gate = (await asker.look()).gate(name)
        if gate is None:
            raise BadInput(f"no gate {name} is open here")
        freed_by_death = directory.guarantee == HostMembership.guarantee
        whom = find(gate, slot, freed_by_death)
        if not yes and not agreed(gate, whom, slot):
            return 1
        if not await asker.break_in(gate, whom):
            complain(
                f"slot {slot} of gate {name} is still taken: its peer (pid {whom.pid}) did not answer in time;"
                f" try again, {'or kill it' if freed_by_death else f'and {IF_DEAD}'}"
            )
            return 1
    print(f"slot {slot} of gate {name} is free again: {meaning(whom)}")
    return 0


def find(gate: GatePicture, slot: int, freed_by_death: bool) -> ListedPerson:
    for one in gate.inside:
        if slot == (one.pid if one.slot is None else one.slot):
            return one
    silent = ", ".join([f"pid {peer.pid}" for peer in gate.silent])
    advice = "kill it to free what it holds" if freed_by_death else IF_DEAD
    hint = f", as far as is known; {silent} does not answer: {advice}" if silent else ""
    raise BadInput(f"nobody is in slot {slot} of gate {gate.name}{hint}")


def meaning(whom: ListedPerson) -> str:
    """What the holder knows of the revocation, for the last line of `break`."""
    if whom.ghost:
        return f"process group {whom.pid} was not notified and may still be running (to end it: kill -- -{whom.pid})"
    return f"pid {whom.pid} was notified, but may still be running for a moment"


def agreed(gate: GatePicture, whom: ListedPerson, slot: int) -> bool:
    if not sys.stdin.isatty():
        raise BadInput("break asks for confirmation, but stdin is not a terminal: use --yes")
    who = "process group" if whom.ghost else "pid"
    print(f"slot {slot} of gate {gate.name} is taken by {who} {whom.pid}: {whom.note}")
    return typer.confirm("Another process may enter while this one is still running. Revoke its permit?")
