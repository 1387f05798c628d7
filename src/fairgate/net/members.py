"""The members file of a runtime directory: who is there, and which gates are open.

It is JSON, replaced as a whole by a rename, so that reading needs no lock. Whoever changes it holds an flock on `lock`
beside it: `join`, `leave`, `remove_dead`, `open_gate`, `close_gate`, `renew_epoch` each are one such change. `version`
rises by one with each: it is the number of the view. With the last peer the gates go, and only the highest epoch stays.

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
from fairgate.errors import BadInput, KMismatch
from fairgate.net.access import Access
from fairgate.net.address import listen_unix
from fairgate.net.watch import is_alive, start_time

SCHEMA = 1
FILE, LOCK, SOCKET = "members.json", "lock", ".sock"
PEERS = ID_LIMIT >> SEAT_BITS
EPOCH_ZERO = 1_704_067_200  # 2024-01-01, in seconds since 1970
EPOCHS = 1 << 31
LOCK_SECONDS = 10.0
LONGEST_NAME = 200


class Place(msgspec.Struct, frozen=True):
    """Where process numbers mean the same."""

    host: str = ""
    boot: str = ""
    pids: int = 0  # the pid namespace


class Peer(msgspec.Struct, frozen=True):
    id: int
    pid: int
    started: int  # clock ticks, see watch.py
    socket: str
    uid: int
    since: int  # seconds since 1970, for people


class Gate(msgspec.Struct, frozen=True):
    name: str
    k: int
    protocol: str
    epoch: int  # its fences are above epoch * 2^32
    creator: int  # a peer


class Members(msgspec.Struct, frozen=True):
    schema: int = SCHEMA
    version: int = 0
    epoch: int = 0  # the highest that was ever given to a gate
    place: Place = Place()
    peers: tuple[Peer, ...] = ()
    gates: tuple[Gate, ...] = ()

    def gate(self, name: str) -> Gate | None:
        return next((gate for gate in self.gates if gate.name == name), None)

    def peer(self, ident: int) -> Peer | None:
        return next((peer for peer in self.peers if peer.id == ident), None)


@dataclass(frozen=True)
class Joined:
    me: Peer
    members: Members
    listener: socket.socket  # for `Transport.serve`


# The changes.


def join(rule: Access) -> Joined:
    """This process becomes a peer; the dead are removed on the way."""
    listener: socket.socket | None = None
    me: Peer | None = None

    def step(members: Members) -> Members:
        nonlocal listener, me
        members = without_dead(rule.folder, members)
        ident = fresh_id(members)
        path = rule.folder / f"{ident}{SOCKET}"
        listener = listen_unix(path, rule.group is not None)
        pid = os.getpid()
        me = Peer(ident, pid, start_time(pid), str(path), os.geteuid(), int(time.time()))
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


def leave(rule: Access, ident: int) -> Members:
    """To leave twice, or after having been removed, is nothing."""
    return change(rule, lambda members: without(rule.folder, members, {ident}))


def remove_dead(rule: Access) -> tuple[Members, tuple[Peer, ...]]:
    """The file afterwards, and who was removed now: if two peers ask at once, one of them gets the list."""
    gone: tuple[Peer, ...] = ()

    def step(members: Members) -> Members:
        nonlocal gone
        after = without_dead(rule.folder, members)
        gone = tuple(peer for peer in members.peers if peer not in after.peers)
        return after

    return change(rule, step), gone


def open_gate(rule: Access, name: str, k: int, protocol: str, creator: int) -> Gate:
    """The gate's record: what was agreed before, or a new one under a fresh epoch. KMismatch if k is another."""
    if not (0 < len(name) <= LONGEST_NAME and name.isprintable()):
        raise BadInput(f"cannot call a gate {name!r:.60}: 1 to {LONGEST_NAME} printable characters")
    if k < 1:
        raise BadInput(f"gate {name} would let nobody in: k is {k}")

    def step(members: Members) -> Members:
        found = members.gate(name)
        if members.peer(creator) is None:
            raise BadInput(f"peer {creator} is not a member of {rule.folder}: it left, or was taken for dead")
        if found is None:
            epoch = next_epoch(members)
            gates = (*members.gates, Gate(name, k, protocol, epoch, creator))
            return msgspec.structs.replace(members, epoch=epoch, gates=gates)
        if found.k != k:
            raise KMismatch(name, k, found.k)
        if found.protocol != protocol:
            raise BadInput(f"gate {name} runs {found.protocol}, and you asked for {protocol}")
        return members

    return known_gate(change(rule, step), name)


def close_gate(rule: Access, name: str) -> Members:
    """The last node of it is gone; the next to open it may choose another k."""

    def step(members: Members) -> Members:
        return msgspec.structs.replace(members, gates=tuple(gate for gate in members.gates if gate.name != name))

    return change(rule, step)


def renew_epoch(rule: Access, name: str) -> Gate:
    """The gate begins anew, with fences above all that there were."""

    def step(members: Members) -> Members:
        epoch = next_epoch(members)
        renewed = msgspec.structs.replace(known_gate(members, name), epoch=epoch)
        gates = tuple(renewed if gate.name == name else gate for gate in members.gates)
        return msgspec.structs.replace(members, epoch=epoch, gates=gates)

    return known_gate(change(rule, step), name)


def known_gate(members: Members, name: str) -> Gate:
    gate = members.gate(name)
    if gate is None:
        raise BadInput(f"there is no gate {name}")
    return gate


# What they are made of.


def fresh_id(members: Members) -> int:
    """Random, so that ids are unique between hosts too. 0 is nobody's."""
    while True:
        ident = 1 + secrets.randbelow(PEERS - 1)
        if members.peer(ident) is None:
            return ident


def next_epoch(members: Members) -> int:
    """Seconds since 2024, but always more than any before, whatever the clock does."""
    epoch = max(int(time.time()) - EPOCH_ZERO, members.epoch + 1)
    if epoch >= EPOCHS:
        raise BadInput("the epochs of fences are used up: is the clock right?")
    return epoch


def here() -> Place:
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return Place(socket.gethostname(), boot, Path("/proc/self/ns/pid").stat().st_ino)


def is_dead(peer: Peer, members: Members) -> bool:
    """BadInput if it cannot be known."""
    place = here()
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
    return without(folder, members, {peer.id for peer in members.peers if is_dead(peer, members)})


def without(folder: Path, members: Members, gone: set[int]) -> Members:
    """And without the sockets that nobody listens to."""
    peers = tuple(peer for peer in members.peers if peer.id not in gone)
    known = {f"{peer.id}{SOCKET}" for peer in peers}
    for path in folder.glob(f"*{SOCKET}"):
        if path.name not in known:
            path.unlink(missing_ok=True)
    return msgspec.structs.replace(members, peers=peers, gates=members.gates if peers else ())


# The file.


def read(folder: Path) -> Members:
    """As it is now. No file is one without members."""
    path = folder / FILE
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return Members()
    except OSError as wrong:
        raise BadInput(f"cannot read {path}: {wrong.strerror}") from wrong
    try:
        members = msgspec.json.decode(data, type=Members)
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
            file.flush()
            os.fsync(file.fileno())
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


def open_shared(rule: Access, path: Path, flags: int) -> int:
    """For the owner, and in a shared directory for the group, whatever the umask is."""
    file = os.open(path, flags | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    if rule.group is not None and os.fstat(file).st_uid == os.geteuid():
        os.fchown(file, -1, rule.group)
        os.fchmod(file, 0o660)
    return file
