"""`fairgate who`, `top`, `break` and `resize`. on_host.py and in_cluster.py have what differs."""

import sys
from typing import Annotated

import typer

from fairgate.cli.exits import log_as_complaints
from fairgate.cli.inspect import on_host
from fairgate.cli.network.options import INSPECT_OPTIONS
from fairgate.cli.network.settings import NetworkSettings
from fairgate.cli.network.typer_options import network_options
from fairgate.errors import BadInput


def slot_number(word: str) -> int:
    if not word.isdecimal():
        raise typer.BadParameter(f"it must be a number, as `fairgate who` shows it, not {word!r}")
    return int(word)


PATH_HINT = "A name with a slash is the path of its file."
GateName = Annotated[
    str | None,
    typer.Argument(
        metavar="GATE", show_default=False, help=f"Show only this gate. {PATH_HINT} Default: all gates in use."
    ),
]
OneGate = Annotated[str, typer.Argument(metavar="GATE", help=f"Name of the gate. {PATH_HINT}")]
Slot = Annotated[
    int,
    typer.Argument(
        metavar="SLOT",
        parser=slot_number,
        help="Slot as shown by `fairgate who`, or the pid if the protocol has no slots.",
    ),
]


@network_options(*INSPECT_OPTIONS)
def who_command(
    network: NetworkSettings,
    gate: GateName = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the result as one JSON object. Times are seconds since 1970.")
    ] = False,
) -> int:
    """List who is inside the gates of this host or of a cluster, and who is waiting.

    Without --join or --mdns, these are the gates of this host, and the guests
    of its standing peers at gates of clusters. Looking changes nothing: it does
    not open a gate, join a cluster or disturb those inside. The exit status is 1
    if there is no such gate.

        fairgate who

        fairgate who gpu --join 10.0.0.5:7400
    """
    log_as_complaints()
    if network.between_hosts:
        from fairgate.cli.inspect import in_cluster  # noqa: PLC0415 (most gates are those of one host)

        return in_cluster.who(network.directory(), gate, as_json)
    return on_host.who(gate, as_json)


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
    if network.between_hosts:
        from fairgate.cli.inspect import in_cluster  # noqa: PLC0415

        return in_cluster.top(network.directory(), gate)
    return on_host.top(gate)


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
    if network.between_hosts:
        from fairgate.cli.inspect import in_cluster  # noqa: PLC0415

        return in_cluster.break_in(network.directory(), gate, slot, yes)
    return on_host.break_in(gate, slot, yes)


def resize_command(
    gate: OneGate, k: Annotated[int, typer.Argument(metavar="K", help="The new number of permits.")]
) -> int:
    """Change the number of permits of a gate on this host, also while it is in use.

    If more are inside than the new K, they stay, and nobody else is let in
    until enough of them have left. Commands may go on using the -k that the
    gate was opened with, or use the new one.

        fairgate resize gpu 5
    """
    return on_host.resize(gate, k)
