"""The deny list of a cluster: keys that are refused although the authority has signed their certificates.

It is the answer to a stolen key, and takes effect without a restart: copy the file `denied` into the directory of keys
of every host. Each line has the fingerprint of a public key, and the name of its host for people to read.
"""

import re
from pathlib import Path

from fairgate.errors import BadInput
from fairgate.net.private_files import check_unchanged, write_over

LINE = re.compile(r"([0-9a-f]{64})( .*)?")


def path_in(folder: Path) -> Path:
    return folder / "denied"


def read(folder: Path) -> frozenset[str]:
    """The fingerprints in the list; none if there is no list. BadInput if it is damaged, or others can change it."""
    path = path_in(folder)
    if not path.exists():
        return frozenset()
    check_unchanged(path)
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as wrong:
        raise BadInput(f"cannot read {path}: {wrong}") from wrong
    found = [LINE.fullmatch(line) for line in lines]
    bad = [number for number, match in enumerate(found, 1) if match is None]
    if bad:
        raise BadInput(f"{path}, line {bad[0]}: expected a fingerprint of 64 hexadecimal digits and a name")
    return frozenset(match[1] for match in found if match is not None)


def add(folder: Path, fingerprint: str, name: str) -> Path:
    """Adds a key to the list and returns the list's path. A no-op if it is there."""
    path = path_in(folder)
    if fingerprint not in read(folder):
        before = path.read_text(encoding="utf-8") if path.exists() else ""
        write_over(path, f"{before}{fingerprint} {name}\n".encode())
    return path
