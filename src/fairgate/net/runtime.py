"""Chooses the directory in which the peers of one host meet: the first of these that can be used.

    $FAIRGATE_DIR                        if it is set, no other is considered
    /run/fairgate                        if an administrator created it, for a group (mode 0770) that we belong to
    $XDG_RUNTIME_DIR/fairgate            if that directory belongs to us
    $XDG_STATE_HOME/fairgate/run/HOST    default ~/.local/state; HOST is for home directories shared by several hosts

Peers in different directories do not see each other. That can happen by accident: a cron job has no XDG_RUNTIME_DIR. So
`warn_of_rivals` is called whenever a gate is opened.
"""

import logging
import os
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path

from fairgate.errors import BadInput
from fairgate.net.access import Access, access
from fairgate.net.members import here, is_dead, read

SHARED = Path("/run/fairgate")
SESSIONS = Path("/run/user")

log = logging.getLogger("fairgate.net")


def home_folder(environ: Mapping[str, str], variable: str, usual: str) -> Path:
    """A directory of the XDG base directory standard, by which relative paths in the environment are ignored."""
    given = environ.get(variable, "")
    return (Path(given) if given.startswith("/") else Path(environ.get("HOME") or Path.home()) / usual) / "fairgate"


def runtime_folder(environ: Mapping[str, str] = os.environ, shared: Path = SHARED) -> Access:
    """The access rule of the directory to use, which is created if necessary. BadInput if it cannot be used."""
    given = environ.get("FAIRGATE_DIR")
    if given:
        return made(Path(given).absolute())
    if shared.is_dir():
        try:
            rule = access(shared)
        except BadInput as unfit:
            log.info("not using the shared directory: %s", unfit)
        else:
            if os.access(shared, os.W_OK | os.X_OK):
                return rule
    session = environ.get("XDG_RUNTIME_DIR", "")
    if is_ours(Path(session)) and session.startswith("/"):
        return made(Path(session) / "fairgate")
    return made(state_folder(environ))


def keys_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """The default directory for keys (keys.py)."""
    return home_folder(environ, "XDG_CONFIG_HOME", ".config") / "keys"


def state_folder(environ: Mapping[str, str]) -> Path:
    return home_folder(environ, "XDG_STATE_HOME", ".local/state") / "run" / host_name()


def host_name() -> str:
    """The name of this host without its domain, because the path of a Unix socket must be short."""
    return socket.gethostname().partition(".")[0]


def is_ours(folder: Path) -> bool:
    """Whether the directory belongs to us. After su, the environment may still name another user's directory."""
    try:
        return folder.is_dir() and folder.stat().st_uid == os.geteuid()
    except OSError:
        return False


def made(folder: Path) -> Access:
    """Creates a private directory if it does not exist, and returns its access rule."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as wrong:
        raise BadInput(f"cannot create {folder}: {wrong.strerror} (FAIRGATE_DIR can name another directory)") from wrong
    if not os.access(folder, os.W_OK | os.X_OK):
        raise BadInput(f"cannot write to {folder} (FAIRGATE_DIR can name another directory)")
    return access(folder)


def candidates(
    environ: Mapping[str, str] = os.environ, shared: Path = SHARED, sessions: Path = SESSIONS
) -> Iterator[Path]:
    """Every directory that a peer of this user may have chosen, depending on its environment."""
    if environ.get("FAIRGATE_DIR"):
        return
    yield shared
    for session in dict.fromkeys([environ.get("XDG_RUNTIME_DIR", ""), f"{sessions}/{os.geteuid()}"]):
        if session.startswith("/"):
            yield Path(session) / "fairgate"
    yield state_folder(environ)


def rivals(
    folder: Path,
    gate: str,
    environ: Mapping[str, str] = os.environ,
    shared: Path = SHARED,
    sessions: Path = SESSIONS,
) -> list[Path]:
    """Other directories in which a gate of this name is open now."""
    found = []
    place = here()
    for other in candidates(environ, shared, sessions):
        try:
            if other.is_dir() and not other.samefile(folder):
                members = read(other)
                if members.gate(gate) and not all(is_dead(peer, members, place) for peer in members.peers):
                    found.append(other)
        except (OSError, BadInput):
            continue  # we cannot read it, so no peer of ours uses it
    return found


def warn_of_rivals(folder: Path, gate: str) -> None:
    for other in rivals(folder, gate):
        log.warning(
            "gate %s in %s is independent of gate %s in %s, which is also open: to share it, set FAIRGATE_DIR to one of"
            " these directories for both",
            gate, folder, gate, other,
        )  # fmt: skip
