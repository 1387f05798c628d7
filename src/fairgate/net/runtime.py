"""The directory in which the peers of one host meet. The first of these that can be used:

    $FAIRGATE_DIR                        nothing else is looked at then
    /run/fairgate                        if an administrator made it, for a group (mode 0770) of which we are
    $XDG_RUNTIME_DIR/fairgate            if that directory is ours
    $XDG_STATE_HOME/fairgate/run/HOST    ~/.local/state if it is not set. HOST, for homes that several hosts share

Peers that came to different directories do not see each other. That happens: a cron job has no XDG_RUNTIME_DIR. So
whoever opens a gate calls `warn_of_rivals`.
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
    """Where fairgate keeps things of one kind; a relative path in the environment does not count, by the standard."""
    given = environ.get(variable, "")
    return (Path(given) if given.startswith("/") else Path(environ.get("HOME") or Path.home()) / usual) / "fairgate"


def runtime_folder(environ: Mapping[str, str] = os.environ, shared: Path = SHARED) -> Access:
    """The directory to meet in, made if need be; BadInput if there is none."""
    given = environ.get("FAIRGATE_DIR")
    if given:
        return made(Path(given).absolute())
    if shared.is_dir():
        try:
            rule = access(shared)
        except BadInput as unfit:
            log.info("not used: %s", unfit)
        else:
            if os.access(shared, os.W_OK | os.X_OK):
                return rule
    session = environ.get("XDG_RUNTIME_DIR", "")
    if is_ours(Path(session)) and session.startswith("/"):
        return made(Path(session) / "fairgate")
    return made(state_folder(environ))


def keys_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Where keys are (keys.py), if nobody says otherwise."""
    return home_folder(environ, "XDG_CONFIG_HOME", ".config") / "keys"


def state_folder(environ: Mapping[str, str]) -> Path:
    return home_folder(environ, "XDG_STATE_HOME", ".local/state") / "run" / host_name()


def host_name() -> str:
    """Without its domain: the path of a Unix socket must be short."""
    return socket.gethostname().partition(".")[0]


def is_ours(folder: Path) -> bool:
    """Somebody who became another user may still have that user's environment."""
    try:
        return folder.is_dir() and folder.stat().st_uid == os.geteuid()
    except OSError:
        return False


def made(folder: Path) -> Access:
    """A private directory, unless it is there already."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as wrong:
        raise BadInput(f"cannot make {folder}: {wrong.strerror} (FAIRGATE_DIR names another directory)") from wrong
    if not os.access(folder, os.W_OK | os.X_OK):
        raise BadInput(f"cannot write to {folder} (FAIRGATE_DIR names another directory)")
    return access(folder)


def candidates(
    environ: Mapping[str, str] = os.environ, shared: Path = SHARED, sessions: Path = SESSIONS
) -> Iterator[Path]:
    """Every directory in which a peer of this user may have come to, whatever its environment was."""
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
            continue  # not ours to read, hence not ours to meet in
    return found


def warn_of_rivals(folder: Path, gate: str) -> None:
    for other in rivals(folder, gate):
        log.warning(
            "gate %s in %s is not the gate %s in %s, which is open too: set FAIRGATE_DIR to one of them for both",
            gate, folder, gate, other,
        )  # fmt: skip
