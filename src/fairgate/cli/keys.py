"""`fairgate keys`: the certificates with which hosts know each other."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

HostName = Annotated[str, typer.Argument(metavar="HOST", help="The host's name or IP address, as others dial it.")]
Also = Annotated[list[str] | None, typer.Option("--also", metavar="NAME", help="Another name or IP address it has.")]
Days = Annotated[int, typer.Option("--days", metavar="N", min=1, help="How long the certificate is good.")]
Place = Annotated[
    str | None, typer.Argument(metavar="[DIR]", show_default=False, help="Where: ~/.config/fairgate/keys if left out.")
]
Folder = Annotated[
    str | None,
    typer.Option("--dir", metavar="DIR", show_default=False, help="Where: ~/.config/fairgate/keys if left out."),
]


def folder_of(given: str | None) -> Path:
    from fairgate.net.runtime import keys_folder  # noqa: PLC0415 (2 MB that the other commands can do without)

    return Path(given) if given else keys_folder()


def init_command(folder: Place = None) -> int:
    """Make the authority of a new cluster.

    Its key, ca.key, signs the certificates of hosts: whoever has it can let anybody in. Keep it where it is made.
    """
    from fairgate.net import keys  # noqa: PLC0415 (cryptography takes long to import, and only keys need it)

    typer.echo(f"{keys.init(folder_of(folder))}: every host of the cluster needs a copy")
    return 0


def add_command(host: HostName, also: Also = None, folder: Folder = None, days: Days = 825) -> int:
    """Make a key and a certificate for one host.

    Copy them and ca.crt to the host, into the same directory there; ca.key stays here.
    """
    from fairgate.net import keys  # noqa: PLC0415 (see above)

    made = keys.add(folder_of(folder), host, also or (), days)
    typer.echo(f"{made}: {host} needs it, its .key and {keys.AUTHORITY}.crt")
    return 0


COMMANDS: dict[str, Callable[..., int | None]] = {"init": init_command, "add": add_command}
