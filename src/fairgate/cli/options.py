"""Options that several commands share, and `option()`, which declares an option together with its help text."""

from typing import Annotated, Any

import typer

from fairgate.cli.durations import EXAMPLES, seconds

GATE, NETWORK, RUN, OUTPUT = "Gate", "Network and faults", "Run", "Output"  # panels of the help


def option(panel: str, help: str, name: str | None = None, metavar: str | None = None, shown: bool = True) -> Any:
    """A typer option in `panel` of the help. With `shown`, typer appends the default to the help text."""
    names = () if name is None else (name,)
    return typer.Option(*names, help=help, rich_help_panel=panel, metavar=metavar, show_default=shown)


def duration(name: str, help: str, panel: str | None = None, shown: bool = False) -> Any:
    """A typer option whose value is a duration, in seconds."""

    def read(word: str | float) -> float:  # typer passes the default through it as well
        try:
            return seconds(str(word))
        except ValueError as wanted:
            raise typer.BadParameter(f"it must be {wanted}, not {word!r}") from None

    text = f"{help} For example {EXAMPLES}."
    return typer.Option(name, metavar="DURATION", parser=read, help=text, show_default=shown, rich_help_panel=panel)


Protocol = Annotated[
    str,
    typer.Argument(metavar="PROTOCOL", help="Name of the algorithm, such as fair_k; `fairgate protocols` lists all."),
]
Options = Annotated[
    list[str] | None,
    option(
        GATE,
        "Set an option of the protocol, such as tree=last_used or lease=5s. Times take a unit: ns, us, ms, s, m or h."
        " May be repeated. `fairgate protocols` lists the options.",
        name="--option",
        metavar="NAME=VALUE",
    ),
]
Dask = Annotated[
    str | None,
    option(RUN, "Run on the Dask cluster with this scheduler, such as tcp://head:8786.", "--dask", "ADDRESS"),
]
Json = Annotated[bool, option(OUTPUT, "Print the result as one JSON object and nothing else.", name="--json")]
