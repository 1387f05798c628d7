"""Files of keys and secrets: who owns them, who else can read or change them, and how they are replaced."""

import os
import stat
from pathlib import Path

from fairgate.errors import BadInput

ROOT = 0
WRITABLE, ACCESSIBLE = 0o022, 0o077  # by the group or by others


def check_private(path: Path) -> None:
    """BadInput unless only we can read the file, or root, and nobody else can replace it."""
    check_folder(path.parent)
    found = look_at(path)
    check_owner(path, found)
    if not stat.S_ISREG(found.st_mode):
        raise BadInput(f"{path} is not a file")
    if found.st_mode & ACCESSIBLE:
        raise BadInput(f"{path} can be read by other users (mode {mode_of(found)}): set mode 0600")


def check_unchanged(path: Path) -> None:
    """BadInput if others can change the file or replace it. They may read it."""
    check_folder(path.parent)
    found = look_at(path)
    check_owner(path, found)
    if found.st_mode & WRITABLE:
        raise BadInput(f"{path} can be changed by other users (mode {mode_of(found)}): set mode 0600 or 0644")


def check_folder(folder: Path) -> None:
    """BadInput if others can put files into the directory."""
    found = look_at(folder)
    check_owner(folder, found)
    if found.st_mode & WRITABLE and not found.st_mode & stat.S_ISVTX:
        raise BadInput(f"{folder} can be changed by other users (mode {mode_of(found)}): set mode 0700 or 0755")


def write_over(path: Path, data: bytes) -> None:
    """Replaces a file in one step, so that nobody ever reads half of it."""
    fresh = path.with_name(f"{path.name}.new")
    try:
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(data)
        fresh.replace(path)
    except OSError as wrong:
        raise BadInput(f"cannot write {path}: {wrong.strerror}") from wrong


def check_owner(path: Path, found: os.stat_result) -> None:
    me = os.geteuid()
    if found.st_uid not in (me, ROOT):
        raise BadInput(f"{path} belongs to user {found.st_uid}, neither to you ({me}) nor to root")


def look_at(path: Path) -> os.stat_result:
    try:
        return path.stat()
    except OSError as wrong:
        raise BadInput(f"cannot read {path}: {wrong.strerror}") from wrong


def mode_of(found: os.stat_result) -> str:
    return f"{stat.S_IMODE(found.st_mode):04o}"
