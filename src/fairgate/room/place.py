"""Where the gates of this host are: the directory, and the file of a gate."""

import os

from fairgate.errors import BadInput
from fairgate.room.room import SUFFIX


def gates_folder(create: bool = True) -> str:
    """The directory in which the processes of this user on this host meet. It is created if necessary."""
    folder = os.path.abspath(os.environ.get("FAIRGATE_DIR") or os.path.expanduser("~/.local/state/fairgate"))
    try:
        if create:
            os.makedirs(folder, 0o700, exist_ok=True)
    except OSError as wrong:
        raise BadInput(f"cannot create {folder}: {wrong.strerror} (FAIRGATE_DIR can name another directory)") from wrong
    return folder


def locate(name: str, create: bool = True) -> tuple[str, str]:
    """The folder and the name of a gate, for Room(). A name with a slash is the path of the gate's file."""
    if not 1 <= len(name) <= 200 or not name.isprintable():
        raise BadInput(f"the name of a gate must be 1 to 200 printable characters, not {name!r:.60}")
    if "/" in name:
        path = os.path.abspath(name)
        return os.path.dirname(path), path
    return gates_folder(create), name


def gates_in(folder: str) -> list[str]:
    """The names of the gates that have a file there, in alphabetical order."""
    return sorted([file.removesuffix(SUFFIX) for file in os.listdir(folder) if file.endswith(SUFFIX)])
