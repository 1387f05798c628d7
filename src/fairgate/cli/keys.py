"""`fairgate keys`: create the certificates by which the hosts of a cluster authenticate each other."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from fairgate.errors import BadInput

HostName = Annotated[
    str, typer.Argument(metavar="HOST", help="Name or IP address of the host, as other peers dial it.")
]
Also = Annotated[
    list[str] | None,
    typer.Option("--also", metavar="NAME", help="Another name or IP address of the host. May be repeated."),
]
Days = Annotated[int, typer.Option("--days", metavar="N", min=1, help="Validity of the certificate, in days.")]
Place = Annotated[
    str | None,
    typer.Argument(
        metavar="DIR", show_default=False, help="Directory to create the files in. Default: ~/.config/fairgate/keys."
    ),
]
Folder = Annotated[
    str | None,
    typer.Option(
        "--dir", metavar="DIR", show_default=False, help="Directory with ca.key. Default: ~/.config/fairgate/keys."
    ),
]


def folder_of(given: str | None) -> Path:
    from fairgate.net.keys_folder import keys_folder  # noqa: PLC0415 (2 MB of imports that most commands do not need)

    return Path(given) if given else keys_folder()


def init_command(folder: Place = None) -> int:
    """Create the certificate authority (CA) of a new cluster: ca.crt and ca.key.

    ca.key signs the certificates of hosts, so anyone who has it can admit any
    host. Leave it where it was created, and copy ca.crt to every host.
    """
    from fairgate.net import keys  # noqa: PLC0415 (cryptography is slow to import)

    typer.echo(f"created {keys.init(folder_of(folder))}: copy it to every host of the cluster")
    return 0


def add_command(host: HostName, also: Also = None, folder: Folder = None, days: Days = 825) -> int:
    """Create the key and the certificate of one host: HOST.crt and HOST.key.

    Copy these two and ca.crt into ~/.config/fairgate/keys of that host; ca.key
    stays here.

        fairgate keys add web1 --also web1.example.com --also 10.0.0.5
    """
    from fairgate.net import keys  # noqa: PLC0415 (see above)

    made = keys.add(folder_of(folder), host, also or (), days)
    typer.echo(f"created {made} and its .key: copy both and {keys.AUTHORITY}.crt to {host}")
    return 0


def deny_command(
    host: Annotated[
        str, typer.Argument(metavar="HOST", help="Host whose key was stolen, or the key's fingerprint (64 digits).")
    ],
    folder: Folder = None,
) -> int:
    """Refuse the key of a host: the answer to a stolen key.

    Copy the file `denied` into the directory of keys of every host. Peers that
    run notice it within seconds, close connections of that key, and accept no
    further ones. Then create another key for the host: remove HOST.crt and
    HOST.key, and run `fairgate keys add HOST`.
    """
    from fairgate.net import keys  # noqa: PLC0415 (see above)

    typer.echo(f"added {host} to {keys.deny(folder_of(folder), host)}: copy it to every host")
    return 0


def rotate_command(
    step: Annotated[str, typer.Argument(metavar="STEP", help="begin, hosts or end, in this order.")],
    folder: Folder = None,
) -> int:
    """Replace the authority of a cluster while its peers run, in three steps.

    begin creates the next authority. From then on, ca.crt contains both. Copy
    it to every host. hosts signs the certificates of all hosts anew, for the
    keys that they have. Copy each to its host. end removes the old authority
    from ca.crt. Copy it to every host. Peers that run notice new files within
    seconds.
    """
    from fairgate.net import key_rotation  # noqa: PLC0415 (see above)

    where = folder_of(folder)
    if step == "begin":
        typer.echo(f"{key_rotation.begin(where)} contains the old and the next authority: copy it to every host")
        typer.echo("then run: fairgate keys rotate hosts")
    elif step == "hosts":
        for path in key_rotation.hosts(where):
            typer.echo(f"signed {path}: copy it to {path.stem}")
        typer.echo("then run: fairgate keys rotate end")
    elif step == "end":
        typer.echo(f"{key_rotation.end(where)} contains the new authority only: copy it to every host")
    else:
        raise BadInput(f"{step!r} is not a step of a rotation: use begin, hosts or end")
    return 0


def secret_command(file: Annotated[str, typer.Argument(metavar="FILE", help="File to create.")]) -> int:
    """Create a secret for a cluster on one host that uses TCP: a random one, in a file that only you can read.

    Give the same file to all its peers with --secret. Between hosts, use
    certificates instead (keys init).
    """
    from fairgate.net import secret  # noqa: PLC0415

    secret.create(Path(file))
    typer.echo(f"created {file}: give it to every peer of the cluster with --secret")
    return 0


COMMANDS: dict[str, Callable[..., int | None]] = {
    "init": init_command,
    "add": add_command,
    "deny": deny_command,
    "rotate": rotate_command,
    "secret": secret_command,
}
