"""The members file of a runtime directory: who is there, and which gates are open.

It is JSON, replaced as a whole by a rename, so that reading needs no lock. Whoever changes it holds an flock on `lock`
beside it: `join`, `leave`, `remove_dead` and `make_change` each are one such change; what they do to gates is in
roster.py. `version` rises by one with each. With the last peer the gates go, but for those where something is still
inside (occupancy.py), and the highest epoch stays.

Every peer is there with its process (number and start time) and its socket, `ID.sock`, which listens before anybody can
read of it. Ids are drawn afresh at every start.

**Who is dead** is asked of the kernel, so all peers of a directory must be on one host and in one pid namespace. The
file says where its peers are. After a reboot all of them are dead. Peers on another host (a shared home) or in another
container cannot be judged from here: then joining is refused, for a gate with two sets of tokens is worse than none.
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
from fairgate.net.address import listen_unix
from fairgate.net.roster import SCHEMA, At, Change, Go, Members, PeerRecord, PidNamespace, Rise, changed, gone
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
    """This process becomes a peer; the dead are removed on the way."""
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
    """To leave twice, or after having been removed, is nothing. `ghosts`: what is still inside by us stays there."""
    return change(rule, lambda members: without(rule.folder, members, {ident}, ghosts))


def remove_dead(rule: Access) -> tuple[Members, tuple[PeerRecord, ...]]:
    """The file afterwards, and who was removed now: if two peers ask at once, one of them gets the list."""
    dead: tuple[PeerRecord, ...] = ()

    def step(members: Members) -> Members:
        nonlocal dead
        after = without_dead(rule.folder, members)
        dead = tuple(peer for peer in members.peers if peer not in after.peers)
        return after

    return change(rule, step), dead


def make_change(rule: Access, change_: Change) -> Members:
    """One change of the roster; BadInput or KMismatch if it cannot be."""
    return change(rule, lambda members: changed(members, change_, now()))


# What they are made of.


def fresh_id(members: Members) -> int:
    """Random, so that ids are unique between hosts too. 0 is nobody's."""
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
    """As seen from this place. BadInput if it cannot be known."""
    if members.place == place:
        return not is_alive(peer.pid, peer.started)
    if members.place.boot != place.boot:
        if members.place.host != place.host:
            raise BadInput(
                f"{Path(peer.socket).parent} is in use on the host {members.place.host}: set FAIRGATE_DIR to a"
                " directory of this host (if that host is gone for good, remove the directory)"
            )
        return True
    if answers(peer.socket):  # same kernel, so that much can be known
        raise BadInput(
            f"{Path(peer.socket).parent} is in use in another container: give each a directory of its own by"
            " FAIRGATE_DIR, or let them share process numbers"
        )
    return True


def answers(path: str) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        return probe.connect_ex(path) not in (errno.ECONNREFUSED, errno.ENOENT)


def without_dead(folder: Path, members: Members) -> Members:
    """And without the ghosts whose occupancy is over."""
    place = here()
    dead = {peer.id for peer in members.peers if is_dead(peer, members, place)}
    members = without(folder, members, dead, ghosts=True)
    return without_ghosts(folder, members)


def without(folder: Path, members: Members, dead: set[int], ghosts: bool) -> Members:
    """And without the sockets that nobody listens to. `ghosts`: what their processes are inside of stays theirs."""
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
    """As it is now. No file, or an empty one, which a power cut can leave, is one without members."""
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
        raise BadInput(f"{path} is damaged ({wrong}): remove it when no peer runs") from wrong
    if members.schema != SCHEMA:
        raise BadInput(f"{path} was written by another version of fairgate ({members.schema}, not {SCHEMA})")
    return members


def change(rule: Access, step: Callable[[Members], Members]) -> Members:
    """One change under the lock; the members afterwards. A step that changes nothing writes nothing."""
    with locked(rule):
        before = read(rule.folder)
        after = step(before)
        if after != before:
            after = msgspec.structs.replace(after, version=before.version + 1)
            write(rule, after)
    return after


def write(rule: Access, members: Members) -> None:
    new = rule.folder / f"{FILE}.new"  # one name for all: what a killed writer left is overwritten
    try:
        with os.fdopen(open_shared(rule, new, os.O_WRONLY | os.O_TRUNC), "wb") as file:
            file.write(msgspec.json.format(msgspec.json.encode(members), indent=1) + b"\n")
        new.replace(rule.folder / FILE)
    except OSError as wrong:
        raise BadInput(f"cannot write to {rule.folder}: {wrong.strerror}") from wrong


@contextmanager
def locked(rule: Access) -> Iterator[None]:
    """Held for a moment only. Who finds it held for long is told so: its holder may be stopped."""
    path = rule.folder / LOCK
    try:
        lock = open_shared(rule, path, os.O_RDWR)
    except OSError as wrong:
        raise BadInput(f"cannot write to {rule.folder}: {wrong.strerror}") from wrong
    try:
        deadline = time.monotonic() + LOCK_SECONDS
        while not try_lock(lock):
            if time.monotonic() > deadline:
                raise BadInput(f"{path} has been held for {LOCK_SECONDS:g} s by another process: is one stopped?")
            time.sleep(0.002)
        yield
    finally:
        fcntl.flock(lock, fcntl.LOCK_UN)  # not left to close: a child may have been forked meanwhile and have it open
        os.close(lock)


def try_lock(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
