"""The members file of a runtime directory: which peers exist and which gates are open.

It is JSON, replaced as a whole by a rename, so that reading needs no lock. Changes are made while holding an flock on
the file `lock` beside it: `join`, `leave`, `remove_dead` and `make_change` are one change each; what they do to gates
is in roster.py. Each change increments `version`. When the last peer leaves, gates are removed, except those with
processes still inside (occupancy.py). The highest epoch is kept.

Every peer is listed with its process (pid and start time) and its socket, `ID.sock`, which already listens when the
peer is listed. Ids are drawn anew at every start.

**Dead peers** are detected through the kernel, so all peers of a directory must be on one host and in one pid
namespace; the file says which. After a reboot all of them are dead. Peers on another host (a shared home directory) or
in another container cannot be checked from here. Joining is refused then, because a gate with two sets of tokens would
be worse than none.
"""

import errno
import fcntl
import os
import secrets
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from fairgate.core.ids import ID_LIMIT, SEAT_BITS
from fairgate.errors import BadInput
from fairgate.net import occupancy
from fairgate.net.access import Access, open_shared
from fairgate.net.roster import SCHEMA, At, Change, Go, Members, PeerRecord, PidNamespace, Rise, changed, gone
from fairgate.net.unix_socket import listen_unix
from fairgate.net.watch import is_alive, start_time

FILE, LOCK, SOCKET = "members.json", "lock", ".sock"
PEERS = ID_LIMIT >> SEAT_BITS
LOCK_SECONDS = 10.0


@dataclass(frozen=True)
class Joined:
    me: PeerRecord
    members: Members
    listener: socket.socket  # for `Transport.serve`


# The changes.


def join(rule: Access) -> Joined:
    """Adds this process as a peer, and removes dead peers."""
    listener: socket.socket | None = None
    me: PeerRecord | None = None

    def step(members: Members) -> Members:
        nonlocal listener, me
        members = without_dead(rule.folder, members)
        ident = fresh_id(members)
        path = rule.folder / f"{ident}{SOCKET}"
        listener = listen_unix(path, rule.group is not None)
        pid = os.getpid()
        me = PeerRecord(ident, pid, start_time(pid), str(path), os.geteuid(), int(time.time()), socket.gethostname())
        return msgspec.structs.replace(members, peers=(*members.peers, me), place=here())

    try:
        members = change(rule, step)
    except BaseException:
        if listener is not None:
            listener.close()
        raise
    assert listener is not None
    assert me is not None
    return Joined(me, members, listener)


def leave(rule: Access, ident: int, ghosts: bool = False) -> Members:
    """Removes a peer; a no-op if it is not listed. With `ghosts`, processes that it let in keep their slots."""
    return change(rule, lambda members: without(rule.folder, members, {ident}, ghosts))


def remove_dead(rule: Access) -> tuple[Members, tuple[PeerRecord, ...]]:
    """The members afterwards, and the peers that this call removed. Of two concurrent calls only one reports a peer."""
    dead: tuple[PeerRecord, ...] = ()

    def step(members: Members) -> Members:
        nonlocal dead
        after = without_dead(rule.folder, members)
        dead = tuple(peer for peer in members.peers if peer not in after.peers)
        return after

    return change(rule, step), dead


def make_change(rule: Access, change_: Change) -> Members:
    """Applies one change to the roster. BadInput or KMismatch if it is not possible."""
    return change(rule, lambda members: changed(members, change_, now()))


# Parts of the changes.


def fresh_id(members: Members) -> int:
    """A random id, so that ids are unique between hosts too. 0 is never used."""
    while True:
        ident = 1 + secrets.randbelow(PEERS - 1)
        if members.peer(ident) is None:
            return ident


def now() -> At:
    return At(int(time.time()))


def here() -> PidNamespace:
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return PidNamespace(socket.gethostname(), boot, Path("/proc/self/ns/pid").stat().st_ino)


def is_dead(peer: PeerRecord, members: Members, place: PidNamespace) -> bool:
    """Whether the peer is dead, as seen from this pid namespace. BadInput if that cannot be determined."""
    if members.place == place:
        return not is_alive(peer.pid, peer.started)
    if members.place.boot != place.boot:
        if members.place.host != place.host:
            raise BadInput(
                f"{Path(peer.socket).parent} is in use on the host {members.place.host}: set FAIRGATE_DIR to a"
                " directory on this host (if that host is gone for good, remove the directory)"
            )
        return True
    if answers(peer.socket):  # same kernel, so this can be checked
        raise BadInput(
            f"{Path(peer.socket).parent} is in use in another container: set FAIRGATE_DIR to a different directory"
            " in each container, or let them share a pid namespace"
        )
    return True


def answers(path: str) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        return probe.connect_ex(path) not in (errno.ECONNREFUSED, errno.ENOENT)


def without_dead(folder: Path, members: Members) -> Members:
    """Without dead peers and without ghosts whose processes are gone."""
    place = here()
    dead = {peer.id for peer in members.peers if is_dead(peer, members, place)}
    members = without(folder, members, dead, ghosts=True)
    return without_ghosts(folder, members)


def without(folder: Path, members: Members, dead: set[int], ghosts: bool) -> Members:
    """Without these peers; also removes stale sockets. With `ghosts`, processes that they let in keep their slots."""
    still = [(held.gate, held.ident, held.slot) for held in occupancy.found(folder)] if ghosts and dead else []
    after = gone(members, Go(tuple(sorted(dead)), tuple(still)), now())
    known = {f"{peer.id}{SOCKET}" for peer in after.peers}
    for path in folder.glob(f"*{SOCKET}"):
        if path.name not in known:
            path.unlink(missing_ok=True)
    return after


def without_ghosts(folder: Path, members: Members) -> Members:
    ghosts = [(gate.name, seat.ident) for gate in members.gates for seat in gate.seats if seat.ghost]
    if ghosts:
        still = {held.ident for held in occupancy.found(folder)}
        for gate, ident in ghosts:
            if ident not in still:
                members = changed(members, Rise(gate, (ident,)), now())
    return members


# The file.


def read(folder: Path) -> Members:
    """The current members: none if the file is missing, or empty, as a power failure can leave it."""
    path = folder / FILE
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return Members()
    except OSError as wrong:
        raise BadInput(f"cannot read {path}: {wrong.strerror}") from wrong
    try:
        members = msgspec.json.decode(data, type=Members) if data else Members()
    except ValueError as wrong:
        raise BadInput(f"{path} is damaged ({wrong}): remove it while no peer is running") from wrong
    if members.schema != SCHEMA:
        raise BadInput(f"{path} was written by another version of fairgate ({members.schema}, not {SCHEMA})")
    return members


def change(rule: Access, step: Callable[[Members], Members]) -> Members:
    """Applies `step` under the lock and returns the result. Writes nothing if nothing changed."""
    with locked(rule):
        before = read(rule.folder)
        after = step(before)
        if after != before:
            after = msgspec.structs.replace(after, version=before.version + 1)
            write(rule, after)
    return after


def write(rule: Access, members: Members) -> None:
    new = rule.folder / f"{FILE}.new"  # always the same name, so that leftovers of a killed writer are overwritten
    try:
        with os.fdopen(open_shared(rule, new, os.O_WRONLY | os.O_TRUNC), "wb") as file:
            file.write(msgspec.json.format(msgspec.json.encode(members), indent=1) + b"\n")
        new.replace(rule.folder / FILE)
    except OSError as wrong:
        raise BadInput(f"cannot write to {rule.folder}: {wrong.strerror}") from wrong


@contextmanager
def locked(rule: Access) -> Iterator[None]:
    """Holds the lock, normally only for a moment. BadInput after 10 s without it: its holder may be stopped."""
    path = rule.folder / LOCK
    try:
        lock = open_shared(rule, path, os.O_RDWR)
    except OSError as wrong:
        raise BadInput(f"cannot write to {rule.folder}: {wrong.strerror}") from wrong
    try:
        deadline = time.monotonic() + LOCK_SECONDS
        while not try_lock(lock):
            if time.monotonic() > deadline:
                raise BadInput(f"another process has held the lock {path} for {LOCK_SECONDS:g} s: is a peer stopped?")
            time.sleep(0.002)
        yield
    finally:
        fcntl.flock(lock, fcntl.LOCK_UN)  # explicitly: a child forked meanwhile may still have it open
        os.close(lock)


def try_lock(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
