"""Options that several commands have, and how options are declared: each with the sentence that explains it."""

from typing import Annotated, Any

import typer

GATE, NETWORK, RUN, OUTPUT = "The gate", "The network and its faults", "The run", "What comes out"  # panels of the help


def option(panel: str, help: str, name: str | None = None, metavar: str | None = None, shown: bool = True) -> Any:
    """`shown`: does the help end with the default?"""
    names = () if name is None else (name,)
    return typer.Option(*names, help=help, rich_help_panel=panel, metavar=metavar, show_default=shown)


Protocol = Annotated[
    str, typer.Argument(metavar="PROTOCOL", help="Which algorithm, such as fair_k; `fairgate protocols` lists them.")
]
Options = Annotated[
    list[str] | None,
    option(
        GATE,
        "Set an option of the protocol; may be repeated. Times take a unit, as in lease=5s. Example: tree=last_used",
        name="--option",
        metavar="NAME=VALUE",
    ),
]
Json = Annotated[bool, option(OUTPUT, "Print one JSON object and nothing else.", name="--json")]
