"""`fairgate protocols`: list all protocols."""

import json
from dataclasses import asdict
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from fairgate.cli.screen import plain_table, stdout
from fairgate.cli.values import describe_option
from fairgate.core.about import About
from fairgate.registry import PROTOCOLS

NONE = "-"
LEGEND = Text(
    "N nodes, k permits. k > 1: the protocol can admit more than one. slots: each permit has a slot number and a rising"
    " fence. FK: Reddy, Mittal and Gupta, Fair K Mutual Exclusion Algorithm for Peer to Peer Systems. RF: the paper on"
    " Raymond's algorithm with failure detectors. The first value of an option is its default; to set another:"
    " fairgate sim bv95 --option tree=last_used",
    style="dim",
)


def protocols_command(
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON array with one object per protocol.")] = False,
) -> None:
    """List the protocols with their paper, cost, capabilities, options and the faults they survive."""
    abouts = [protocol.about for protocol in PROTOCOLS.values()]
    if as_json:
        print(json.dumps([asdict(about) for about in abouts]))
    else:
        stdout().print(protocols_table(abouts), "", origins_table(abouts), "", LEGEND, sep="\n")


def protocols_table(abouts: list[About]) -> Table:
    table = plain_table("Protocols")
    table.add_column("name", style="bold", no_wrap=True)
    table.add_column("kind", no_wrap=True)
    table.add_column("messages per entry")
    for name in ("k > 1", "slots"):
        table.add_column(name, justify="center", no_wrap=True)
    table.add_column("survives")
    for about in abouts:
        survives = ", ".join(about.survives) or NONE
        table.add_row(about.name, about.kind, about.cost, yes(about.many), yes(about.slots), survives)
    return table


def origins_table(abouts: list[About]) -> Table:
    """The remaining columns: one table with all of them would be too wide."""
    table = plain_table("Papers and options")
    table.add_column("name", style="bold", no_wrap=True)
    table.add_column("paper")
    table.add_column("options")
    for about in abouts:
        options = [describe_option(*option).replace("|", " | ") for option in about.options.items()]
        table.add_row(about.name, about.paper, "\n".join(options) or NONE)
    return table


def yes(flag: bool) -> str:
    return "yes" if flag else NONE
