"""`fairgate where` and `fairgate setup`: the directory of the gates, and what an administrator can do about it."""

import json
import os
import pwd
from typing import Annotated

import typer

from fairgate.errors import BadInput
from fairgate.room.clusters import CLUSTERS, folders
from fairgate.room.folder import Folder
from fairgate.room.place import RUN, RUN_MODE, choose, locate
from fairgate.room.room import path_of_gate

TMPFILES = f"""\
# Creates the directory for the gates of all users of this host at every boot. Each user gets a private one in it.
d {RUN} {RUN_MODE:o} root root -
# For the standing peers of clusters. A peer that does not run as root needs a directory with the cluster's name here,
# for its user and for the group whose members may be its guests. For example:
# d {RUN}/{CLUSTERS}/fairgate 2770 PEER-USER GUEST-GROUP -
d {RUN}/{CLUSTERS} 0755 root root -
"""
OTHERS = (
    "Every user has other gates, and root is another user: sudo does not meet them. To share a gate, name it by a path"
    " (./gpu.gate) in a directory that all its users can write to."
)


def where_command(
    gate: Annotated[
        str | None,
        typer.Argument(metavar="GATE", show_default=False, help="Print the file of this gate. Default: the directory."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as one JSON object.")] = False,
) -> int:
    """Print the directory of your gates on this host, and why it is the one.

    It depends on the user and the host alone, so that cron jobs, terminals and
    services meet. FAIRGATE_DIR names another one. A gate that is named by a
    path is a file of that name.

        fairgate where

        fairgate where gpu
    """
    if gate is None:
        choice = choose(create=False)
        check(choice.path)
        clusters = folders()
        told = {"directory": choice.path, "why": choice.why, "user": os.geteuid(), "clusters": clusters}
        lines = [choice.path, f"The gates of {user()} are here, because {choice.why}.", OTHERS]
        lines += [f"Guests of a standing peer of a cluster meet in {folder}" for folder in clusters]
    else:
        folder, name = locate(gate, create=False)
        check(folder)
        told = {"directory": folder, "file": path_of_gate(folder, name), "user": os.geteuid()}
        lines = [path_of_gate(folder, name)]
    typer.echo(json.dumps(told) if as_json else "\n".join(lines))
    return 0


def check(folder: str) -> None:
    """Raises BadInput if it is there and cannot be used."""
    if os.path.lexists(folder):
        Folder(folder).close()


def user() -> str:
    try:
        return f"{pwd.getpwuid(os.geteuid()).pw_name} (user {os.geteuid()})"
    except KeyError:
        return f"user {os.geteuid()}"


def setup_command(
    print_tmpfiles: Annotated[
        bool, typer.Option("--print-tmpfiles", help=f"Print lines for systemd-tmpfiles that create {RUN}.")
    ] = False,
) -> int:
    """Prepare a host for all its users, as an administrator.

    Nothing has to be prepared. But with a directory in /run, gates do not
    depend on the home directories of users, which may be on another host.

        fairgate setup --print-tmpfiles | sudo tee /etc/tmpfiles.d/fairgate.conf

        sudo systemd-tmpfiles --create fairgate.conf
    """
    if not print_tmpfiles:
        raise BadInput("nothing to do: use --print-tmpfiles")
    typer.echo(TMPFILES, nl=False)
    return 0
