"""What a standing peer saves, so that a restart never founds a second cluster.

A directory has two files. `cluster.json` has the id of the cluster, the addresses of its peers, and the highest epoch
that this peer has seen, above which fences must go on if the cluster is ever made again. `lock` is locked while the
peer runs: two peers with the same directory would be two standing peers of one host in one cluster.

Votes are not saved: a peer that is started again is a new member. But a peer that was the only voter (`alone`) knows
that nobody can have decided anything without it. So it goes on where it was, once all leases that it may have granted
are over. A person can decide the same for any peer by `fairgate abandon-majority`.
"""

import fcntl
import hashlib
import os
import socket
from pathlib import Path

import msgspec

from fairgate.errors import BadInput

FILE, LOCK = "cluster.json", "lock"


class SavedCluster(msgspec.Struct, frozen=True):
    cluster: str  # its id
    lease: int  # ns
    drift: int  # ppm
    epoch: int  # the highest seen
    address: str  # of this peer
    addresses: tuple[str, ...]  # of the other standing peers, voters first
    alone: bool = False  # this peer was the only voter
    left: bool = False  # it left, so it has granted no leases since

    def wait(self) -> int:
        """For how long leases of the time before may be valid, in ns."""
        return 0 if self.left else self.lease + self.lease * self.drift // 1_000_000


def abandoned(saved: SavedCluster) -> SavedCluster:
    """What to save if a person has decided that the other voters are gone, and all leases are over."""
    return msgspec.structs.replace(saved, alone=True, left=True)


class StateFolder:
    def __init__(self, path: str) -> None:
        """BadInput if the directory cannot be used, or another peer uses it."""
        self.path = Path(path)
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.lock = os.open(self.path / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as wrong:
            raise BadInput(f"cannot use the state directory {path}: {wrong.strerror}") from wrong
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            pid = os.pread(self.lock, 20, 0).decode(errors="replace").strip()
            os.close(self.lock)
            raise BadInput(
                f"a standing peer of this host is in this cluster already (pid {pid}, {path}): stop it first"
            ) from None
        try:
            os.ftruncate(self.lock, 0)
            os.pwrite(self.lock, str(os.getpid()).encode(), 0)
        except OSError as wrong:
            os.close(self.lock)
            raise BadInput(f"cannot use the state directory {path}: {wrong.strerror}") from wrong
        self.last: SavedCluster | None = None

    def digest(self) -> str:
        """Which directory this is, for people who see the peer under another id and address after a restart."""
        place = f"{socket.gethostname()}\n{self.path.resolve()}"
        return hashlib.blake2b(os.fsencode(place), digest_size=8).hexdigest()

    def load(self) -> SavedCluster | None:
        """None if nothing was saved. BadInput if it cannot be read."""
        self.last = read_saved(self.path)
        return self.last

    def save(self, state: SavedCluster) -> None:
        """BadInput if that fails."""
        if state == self.last:
            return
        new = self.path / f"{FILE}.new"
        try:
            new.write_bytes(msgspec.json.encode(state))
            new.replace(self.path / FILE)
        except OSError as wrong:
            raise BadInput(f"cannot save to {self.path}: {wrong.strerror}") from wrong
        self.last = state

    def close(self) -> None:
        os.close(self.lock)


def read_saved(folder: Path) -> SavedCluster | None:
    """None if nothing was saved. BadInput if it cannot be read."""
    file = folder / FILE
    try:
        return msgspec.json.decode(file.read_bytes(), type=SavedCluster)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError) as wrong:
        raise BadInput(f"cannot read {file}: {wrong}") from wrong
