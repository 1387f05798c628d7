"""The rooms of clusters on this host: where they are, and which standing peer lets guests in there.

A cluster has one directory on a host, which its standing peer owns:

    $FAIRGATE_DIR/clusters/NAME           if it is set, else
    /run/fairgate/clusters/NAME           if an administrator created it, or the peer is root's, else
    the user's own directory (place.py)/clusters/NAME

With mode 2770 the members of its group are the guests. A file in it describes the peer: a process that can read it,
and finds there the address that it was told to join, becomes a guest. The id of the cluster stands in the description
and in every room, because a cluster that is made anew has the same directory.

The peer's bell shows whether it is running. If it is not, its description stays: this is still a host with a standing
peer, which is being started or restarted, and its guests wait in the rooms until it is there.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress

from fairgate.arguments import LONGEST_NAME, check_name
from fairgate.errors import BadInput, FairgateError
from fairgate.room import system
from fairgate.room.bell import path_of
from fairgate.room.calls import open_to_ring
from fairgate.room.file import RoomFile
from fairgate.room.folder import NOBODY, Folder, current_folder, group_of, share
from fairgate.room.place import RUN, Places, gates_in, make_private
from fairgate.room.room import path_of_gate
from fairgate.room.system import OtherClock

CLUSTERS = "clusters"
DESCRIPTION = "peer"
FIRST_LINE = "fairgate peer 1"
DEFAULT_NAME = "fairgate"
NO_MAJORITY = "no majority"  # a value of `guarantee`: the peer cannot let anybody in
GROUP_MODE = 0o2770
LARGEST_WORD = 0x7FFF_FFFF_FFFF_FFFF
LONGEST_FILE = 200  # bytes
NO_BELL = 0  # of a peer that is not running yet
OF_PEER = ("listen", "advertise", "keys", "tls", "journal", "metrics")  # options that guests do not have
ESCAPED = {"%": "%25", "/": "%2F", ".": "%2E"}  # in the name of a file


class StandingPeer:
    """What the description of a standing peer says."""

    def __init__(
        self,
        folder: str,
        cluster: str,
        cluster_id: str,
        peer: int,
        pid: int,
        bell: int,
        guarantee: str,
        addresses: tuple[str, ...],
        boot: int | None = None,
    ) -> None:
        self.folder = folder
        self.cluster = cluster  # its name
        self.cluster_id = cluster_id
        self.peer = peer  # its id
        self.pid = pid
        self.bell = bell
        self.guarantee = guarantee
        self.addresses = addresses  # of all members
        self.boot = system.boot_id() if boot is None else boot  # which shows its clock

    def refuse_other_clock(self) -> None:
        """Raises BadInput if the peer's promises mean nothing here, because its clock is another one."""
        if self.boot != system.boot_id():
            raise BadInput(
                f"the standing peer of cluster {self.cluster} on this host (pid {self.pid}) is in another time"
                " namespace, where the clock of leases differs from the one here: run this process there (nsenter"
                " --time), or start a peer for this namespace and give both of them FAIRGATE_DIR"
            )

    def is_alive(self) -> bool:
        fd = open_to_ring(path_of(self.folder, self.bell))
        if fd >= 0:
            os.close(fd)
        return fd >= 0


def number_of(cluster_id: str) -> int:
    """The id of a cluster as a word of a room. 0 if it is not known."""
    return int(cluster_id, 16) & LARGEST_WORD if cluster_id else 0


# Where the directories are.


def parents() -> list[str]:
    """The directories in which those of clusters may be. A peer prefers the first one."""
    given = os.environ.get("FAIRGATE_DIR")
    if given:
        own = given if given.startswith("/") else f"{current_folder()}/{given}"
        return [f"{own}/{CLUSTERS}"]
    found = [f"{RUN}/{CLUSTERS}"] if is_of_administrator(f"{RUN}/{CLUSTERS}") else []
    return [*found, f"{Places(os.geteuid()).first()[0]}/{CLUSTERS}"]


def is_of_administrator(path: str) -> bool:
    try:
        found = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == 0 and not found.st_mode & 0o022


def make_folder(cluster: str, group: int = NOBODY) -> str:
    """The directory of this cluster, for its standing peer; created if necessary, for this group or for the user alone.

    Raises BadInput if it cannot be used, or if there is another standing peer.
    """
    path = folder_for_peer(cluster)
    if not os.path.isdir(path):
        make_private(path)
        if group != NOBODY:
            try:
                os.chown(path, -1, group)
                os.chmod(path, GROUP_MODE)
            except OSError as wrong:
                os.rmdir(path)
                raise BadInput(f"cannot give {path} to group {group}: {wrong.strerror}") from wrong
    with Folder(path) as folder:
        if folder.group != group:
            whose = "for another group or for none" if group != NOBODY else "for a group: name it with --group"
            raise BadInput(f"cannot use {path}: it is {whose}, or remove it if nobody uses it")
    other = described(path)
    if other is not None and other.is_alive():
        raise BadInput(
            f"pid {other.pid} is already the standing peer of cluster {other.cluster} on this host ({path}): one is"
            " enough, or name another cluster with --cluster"
        )
    refuse_guests_of_another_clock(path)
    return path


def refuse_guests_of_another_clock(folder: str) -> None:
    """They have waited since an earlier peer ended, or are still inside. Raises OtherClock if there are any."""
    for name in gates_in(folder):
        try:
            RoomFile(path_of_gate(folder, name), 0, create=False, cluster=True).close()
        except OtherClock:
            raise
        except FairgateError:  # it is reported when the peer serves it
            pass


def folder_for_peer(cluster: str) -> str:
    """A directory in /run/fairgate/clusters is for root, or was created for this peer by an administrator."""
    paths = [f"{parent}/{file_name(cluster)}" for parent in parents()]
    return paths[0] if len(paths) == 1 or os.geteuid() == 0 or os.path.isdir(paths[0]) else paths[1]


def file_name(name: str) -> str:
    """The name of a gate or a cluster as that of a file. Raises BadInput if it is too long."""
    check_name(name, LONGEST_NAME)
    first = ESCAPED.get(name[0], name[0])
    rest = name[1:].replace("%", ESCAPED["%"]).replace("/", ESCAPED["/"])
    if len((first + rest).encode("utf-8", "surrogateescape")) > LONGEST_FILE:
        raise BadInput(f"{name!r:.60} is too long for a guest of a cluster: use at most {LONGEST_FILE} bytes")
    return first + rest


def name_of(file: str) -> str:
    for character, escaped in reversed(ESCAPED.items()):
        file = file.replace(escaped, character)
    return file


# The description of a peer.


def describe(standing: StandingPeer) -> None:
    """Write the description, in one go. Raises BadInput."""
    lines = [
        FIRST_LINE,
        f"cluster {standing.cluster}",
        f"id {standing.cluster_id}",
        f"peer {standing.peer}",
        f"pid {standing.pid}",
        f"bell {standing.bell}",
        f"boot {standing.boot}",
        f"guarantee {standing.guarantee}",
        *[f"address {address}" for address in standing.addresses],
    ]
    path = f"{standing.folder}/{DESCRIPTION}"
    new = f"{path}.{os.getpid()}.new"
    try:
        fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            os.write(fd, "\n".join([*lines, ""]).encode())
            share(fd, group_of(os.stat(standing.folder)))
        finally:
            os.close(fd)
        os.rename(new, path)
    except OSError as wrong:
        raise BadInput(f"cannot write {path}: {wrong.strerror}") from wrong


def described(folder: str) -> StandingPeer | None:
    """The peer that the description in this directory names, or None if there is none that can be read."""
    try:
        fd = os.open(f"{folder}/{DESCRIPTION}", os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        lines = os.read(fd, 1 << 20).decode("utf-8", "replace").split("\n")
    except OSError:
        return None
    finally:
        os.close(fd)
    words = [line.partition(" ") for line in lines[1:] if line]
    said = {key: value for key, _, value in words}
    try:
        if lines[0] != FIRST_LINE:
            return None
        addresses = tuple([value for key, _, value in words if key == "address"])
        numbers = int(said["peer"]), int(said["pid"]), int(said["bell"])
        number_of(said["id"])
        boot = int(said["boot"]) if "boot" in said else None  # an earlier version of fairgate has written it
        return StandingPeer(folder, said["cluster"], said["id"], *numbers, said.get("guarantee", ""), addresses, boot)
    except (KeyError, ValueError):
        return None


def announce(folder: str, cluster: str, addresses: tuple[str, ...]) -> None:
    """Describe a peer that is being started, by the addresses that it was given: its guests can wait from now on."""
    before = described(folder)
    if before is None:
        before = StandingPeer(folder, cluster, "", 0, os.getpid(), NO_BELL, "", ())
    before.addresses = tuple(dict.fromkeys((*before.addresses, *addresses)))
    describe(before)


# Finding the peer whose guest to be.


def find_standing(addresses: tuple[str, ...], cluster: str | None = None) -> StandingPeer | None:
    """The standing peer that this host has in the cluster with a member at one of these addresses, if it has one.

    Without addresses, the one in the cluster with this name. It need not be running. Raises BadInput if the cluster of
    one that is has another name.
    """
    name = cluster or DEFAULT_NAME
    for standing, runs in all_standing():
        listed = any(is_listed(address, standing.addresses) for address in addresses)
        if listed and runs and standing.cluster != name:
            raise BadInput(f"{addresses[0]} is in cluster {standing.cluster}, not in {name}: name it with --cluster")
        if standing.cluster == name and (listed or not addresses or not standing.addresses):
            return standing
    return None


def standing_peer(seeds: tuple[str, ...], journal: str | None, network: dict[str, object]) -> StandingPeer | None:
    """Whose guest a process becomes that joins with these arguments; None if it has to become a peer itself."""
    if not all(isinstance(seed, str) for seed in seeds):
        return None  # a peer refuses them
    given = [name for name, value in (*network.items(), ("journal", journal)) if value]
    return host_of_guest(seeds, str(network.get("cluster") or DEFAULT_NAME), given)


def host_of_guest(
    seeds: tuple[str, ...], cluster: str | None, given: list[str], shown: str = ""
) -> StandingPeer | None:
    """As find_standing, for a process that was given these options. `shown` is put before their names.

    If the peer is not running, a process that was given what peers need becomes one itself. Raises BadInput if a guest
    was given what is its peer's to decide.
    """
    standing = find_standing(seeds, cluster)
    own = [name for name in OF_PEER if name in given]
    if standing is None or not own:
        return standing
    if not standing.is_alive():
        return None
    raise BadInput(
        f"{shown}{own[0]} is for peers: this process is a guest of the standing peer of cluster {standing.cluster} on"
        f" this host (pid {standing.pid}), which has its own"
    )


def all_standing() -> list[tuple[StandingPeer, bool]]:
    """Those of this host whose guest this process may be, and whether they are running. Those that are come first."""
    found = [described(folder) or undescribed(folder) for folder in folders()]
    peers = [(one, one.is_alive()) for one in found if one is not None]
    return sorted(peers, key=lambda peer: not peer[1])


def undescribed(folder: str) -> StandingPeer | None:
    """The peer for which an administrator has created this directory, if none has been started since."""
    above, _, file = folder.rpartition("/")
    made = (
        above == f"{RUN}/{CLUSTERS}" and os.access(folder, os.W_OK) and not os.path.lexists(f"{folder}/{DESCRIPTION}")
    )
    return StandingPeer(folder, name_of(file), "", 0, 0, NO_BELL, "", ()) if made else None


def folders() -> list[str]:
    """The directories of all clusters on this host that this process can see."""
    found = []
    try:
        above = parents()
    except BadInput:  # this user has no place for gates; that is no problem for a member of a cluster
        return []
    for parent in above:
        with suppress(OSError):
            found += [f"{parent}/{name}" for name in sorted(os.listdir(parent))]
    return found


def is_listed(address: str, members: tuple[str, ...]) -> bool:
    """Is it the address of one of these members? Names of hosts are looked up if a port is the same."""
    if address in members:
        return True
    host, _, port = address.rpartition(":")
    same = [other.rpartition(":")[0] for other in members if other.rpartition(":")[2] == port]
    if not same or address.startswith("unix:"):
        return False
    here = numbers_of(host)
    return any(here & numbers_of(other) for other in same)


def numbers_of(host: str) -> set[str]:
    import socket  # noqa: PLC0415 (slow to import, and most addresses are found as they are)

    try:
        return {str(found[4][0]) for found in socket.getaddrinfo(host.strip("[]"), None)}
    except OSError:
        return set()
