"""`fairgate who`, `top` and `break`: looking at the gates of this host or of a cluster, and breaking a permit."""

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
from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from fairgate.cli.exits import complain, log_as_complaints
from fairgate.cli.network.options import TO_ASK
from fairgate.cli.network.settings import Net
from fairgate.cli.network.typer_options import net_options
from fairgate.cli.screen import counted, plain_table, seconds, stdout
from fairgate.errors import BadInput
from fairgate.live.ask import Asker, GatePicture, Picture, Someone, look, run
from fairgate.live.asked import Asked
from fairgate.live.host import HostGround

REFRESH_SECONDS = 0.5
NONE = "-"
NOTHING = "no gate is open here"

GateName = Annotated[str | None, typer.Argument(metavar="[GATE]", show_default=False, help="This one alone.")]
OneGate = Annotated[str, typer.Argument(metavar="GATE", help="Its name.")]
Slot = Annotated[
    int,
    typer.Argument(metavar="SLOT", help="As `fairgate who` shows it; the pid, where the protocol has no slots."),
]


# who.


@net_options(*TO_ASK)
def who_command(
    net: Net, gate: GateName = None, as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False
) -> int:
    """Say who is inside of the gates of this host or of a cluster, and who waits there.

    To look is not to join: nobody's list of peers changes by it.

        fairgate who

        fairgate who gpu --join 10.0.0.5:7400
    """
    log_as_complaints()
    asked = net.asked()
    picture = chosen(look(asked), gate)
    if as_json:
        print(json.dumps(for_programs(picture, asked)))
    else:
        stdout().print(shown(picture, gate, asked))
    return 0


def chosen(picture: Picture, gate: str | None) -> Picture:
    return Picture(tuple([one for one in picture.gates if gate in (None, one.name)]), picture.peers)


def for_programs(picture: Picture, asked: Asked) -> dict[str, Any]:
    """Times are seconds since 1970. Ids and sockets are fairgate's own affair."""

    def plain(one: Any, left_out: tuple[str, ...]) -> dict[str, Any]:
        return {name: value for name, value in asdict(one).items() if name not in left_out}

    gates = []
    for gate in picture.gates:
        told = asdict(gate)
        for name in ("inside", "waiting"):
            told[name] = [plain(one, ("ident", "peer")) for one in getattr(gate, name)]
        told["silent"] = [{"pid": peer.pid, "host": peer.host} for peer in gate.silent]
        gates.append(told)
    return {**asked.named(), "guarantee": asked.guarantee, "peers": picture.peers, "gates": gates}


def shown(picture: Picture, gate: str | None, asked: Asked) -> Group | Text:
    there = f"{counted(picture.peers, 'peer')} {asked.where()}"
    if not picture.gates:
        open_ones = NOTHING if gate is None else f"no gate {gate} is open here"
        return Text(f"{open_ones} ({there})")
    parts: list[Any] = []
    for one in picture.gates:
        parts += ["", *gate_shown(one)] if parts else gate_shown(one)
    if asked.guarantee != HostGround.guarantee:
        parts += ["", Text(f"{there}, guarantee: {asked.guarantee} (a peer that dies is not survived)")]
    return Group(*parts)


def gate_shown(gate: GatePicture) -> list[Any]:
    title = f"{gate.name}: {len(gate.inside)} of {gate.k} inside, {len(gate.waiting)} waiting ({gate.protocol})"
    table = plain_table(title)
    for name in ("slot", "for", "pid"):
        table.add_column(name, justify="right", no_wrap=True)
    for name in ("host", "fence", "lease"):
        table.add_column(name, no_wrap=True)
    table.add_column("what", overflow="fold")
    now = time.time()
    for one in gate.inside:
        add_row(table, NONE if one.slot is None else str(one.slot), one, now)
    for one in gate.waiting:
        add_row(table, "waits", one, now)
    parts: list[Any] = [table if table.rows else Text(title, style="bold")]
    for peer in gate.silent:
        silent = f"pid {peer.pid} on {peer.host} does not answer: stopped, perhaps. What it holds is not known."
        parts.append(Text(silent, style="yellow"))
    return parts


def add_row(table: Table, where: str, one: Someone, now: float) -> None:
    lease = NONE if one.deadline is None else seconds(max(one.deadline - now, 0.0))
    pid = f"group {one.pid}" if one.ghost else str(one.pid)
    fence = NONE if one.fence is None else str(one.fence)
    style = "yellow" if one.ghost else ("dim" if where == "waits" else "")
    table.add_row(
        where, seconds(round(max(now - one.since, 0.0), 1)), pid, one.host, fence, lease, Text(one.note), style=style
    )


# top.


@net_options(*TO_ASK)
def top_command(net: Net, gate: GateName = None) -> int:
    """Show who is inside and who waits, as it changes.

    q or Ctrl-C ends it.

        fairgate top gpu --join 10.0.0.5:7400
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise BadInput("top needs a terminal: use fairgate who")
    log_as_complaints()
    return run(watch(net.asked(), gate))


async def watch(asked: Asked, gate: str | None) -> int:
    async with Asker(asked) as asker:
        picture = await asker.look()  # what is wrong with it is told before there is a screen
        logging.disable(logging.WARNING)
        with keys(), Live(console=stdout(), screen=True, auto_refresh=False) as live:
            while True:
                live.update(shown(chosen(picture, gate), gate, asked), refresh=True)
                if "q" in pressed(REFRESH_SECONDS):
                    return 0
                picture = await asker.look()


@contextmanager
def keys() -> Iterator[None]:
    """One by one, and not shown."""
    before = termios.tcgetattr(sys.stdin)
    tty.setcbreak(sys.stdin)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def pressed(within: float) -> str:
    """Nothing, if none was."""
    ready, _, _ = select.select([sys.stdin], [], [], within)
    return os.read(sys.stdin.fileno(), 100).decode(errors="replace").lower() if ready else ""


# break.


@net_options(*TO_ASK)
def break_command(
    net: Net, gate: OneGate, slot: Slot, yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False
) -> int:
    """End the permit of whoever is in this slot: for when nobody else can.

    It is told so, and fairgate run ends its command; but until it has stopped, it and the next one are inside together.
    What a ghost left behind is told nothing and goes on running: end it first.

        fairgate break gpu 2

        fairgate break gpu 2 --join 10.0.0.5:7400
    """
    log_as_complaints()
    return run(broken(net.asked(), gate, slot, yes))


async def broken(asked: Asked, name: str, slot: int, yes: bool) -> int:
    async with Asker(asked) as asker:
        gate = (await asker.look()).gate(name)
        if gate is None:
            raise BadInput(f"no gate {name} is open here")
        whom = find(gate, slot)
        if not yes and not agreed(gate, whom, slot):
            return 1
        if not await asker.break_in(gate, whom):
            complain(f"slot {slot} of gate {name} is still taken: its peer (pid {whom.pid}) did not answer in time")
            return 1
    print(f"slot {slot} of gate {name} is free again: {meaning(whom)}")
    return 0


def find(gate: GatePicture, slot: int) -> Someone:
    for one in gate.inside:
        if slot == (one.pid if one.slot is None else one.slot):
            return one
    silent = ", ".join([f"pid {peer.pid}" for peer in gate.silent])
    hint = f" as far as is known; {silent} does not answer: end that to free what it holds" if silent else ""
    raise BadInput(f"nobody is in slot {slot} of gate {gate.name}{hint}")


def meaning(whom: Someone) -> str:
    if whom.ghost:
        return f"process group {whom.pid} may still be at work, and knows nothing of it (kill -- -{whom.pid} ends it)"
    return f"pid {whom.pid} was told, but may still be at work for a moment"


def agreed(gate: GatePicture, whom: Someone, slot: int) -> bool:
    if not sys.stdin.isatty():
        raise BadInput("break asks on a terminal, and this is none: --yes says that you mean it")
    who = "process group" if whom.ghost else "pid"
    print(f"slot {slot} of gate {gate.name} is taken by {who} {whom.pid}: {whom.note}")
    return typer.confirm("Another may come in while that is still at work. Break it?")
