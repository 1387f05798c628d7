"""The gates of this host as people and programs see them: for `fairgate who`, `top`, `break` and the metrics.

Looking changes nothing, needs no more than the right to read, and never waits for long. A copy of the table is taken
with its lock, or without it if a stopped process has that. Only the seats' records are read, which are true at any
moment (table.py), and a request whose process is dead is left out. So a damaged or half-finished table does no harm.
"""

import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from fairgate.errors import BadInput
from fairgate.room import calls, clusters, keeping, links, older, place, system, table
from fairgate.room.layout import (
    BOOT,
    BUCKETS,
    CAPACITY,
    GRANTED_BY,
    GRANTS,
    HISTOGRAM,
    INSIDE,
    IS_BEING_MADE,
    KEPT,
    LONGEST,
    LOSSES,
    MAGIC,
    PERMITS,
    PID,
    PINNED,
    SLOTS,
    STATE,
    TICKET,
    WAITED,
    WAITING,
    K,
)
from fairgate.room.links import DAMAGE, Table
from fairgate.room.listing import Listed, listed
from fairgate.room.opening import LARGEST
from fairgate.room.room import path_of_gate
from fairgate.room.senses import LiveSenses
from fairgate.room.table import Change, nobody_is_stopped
from fairgate.room.words import copied

PATIENCE = 200_000_000  # ns for the lock, before the table is read without it
GLANCE = 1_000_000  # ns, for one who must not be kept waiting


class Visitor(NamedTuple):
    """A request whose process is alive, or has left processes inside."""

    request: Listed
    visible: bool  # its process id means something here; it does not in another pid namespace
    stopped: bool
    left_behind: bool  # its process is dead, and others that inherited its permit keep it


class Counters(NamedTuple):
    """Since the gate was created. Times are nanoseconds."""

    grants: int
    waited: int
    longest: int
    losses: int
    histogram: tuple[int, ...]  # grants by wait: see layout.py


class GateView(NamedTuple):
    name: str
    path: str
    k: int
    inside: tuple[Visitor, ...]  # by slot
    waiting: tuple[Visitor, ...]  # in order
    pins: tuple[int, ...]  # the pids of those that keep k as it is
    counters: Counters

    @property
    def taken(self) -> int:
        """How many slots are."""
        return sum([visitor.request.permits for visitor in self.inside])

    @property
    def in_use(self) -> bool:
        return bool(self.inside or self.waiting or self.pins)


class HostView(NamedTuple):
    folder: str
    gates: tuple[GateView, ...]  # by name
    unusable: tuple[tuple[str, str], ...]  # names of others, and what is wrong with them


class ClusterView(NamedTuple):
    """The rooms of a cluster on this host. Only guests of this host are seen there."""

    name: str
    cluster_id: str
    pid: int  # of the standing peer that lets guests in, or 0: there is none
    guarantee: str  # what that peer says
    rooms: HostView


def look(folder: str, others: Sequence[tuple[str, str]] = ()) -> HostView:
    """All gates of a folder, and others. One that cannot be read does not hide the rest."""
    gates, unusable = [], []
    for where, name in (*[(folder, name) for name in names_in(folder)], *others):
        try:
            gate = look_at(where, name)
        except BadInput as wrong:
            unusable.append((name, str(wrong)))
        else:
            gates += [gate] if gate else []
    return HostView(folder, tuple(gates), tuple(unusable))


def look_at_clusters() -> list[ClusterView]:
    """Those on this host that this process can look into. A room keeps its guests when its peer has gone."""
    found = []
    for folder in clusters.folders():
        peer = clusters.described(folder)
        with suppress(BadInput):  # it is for other users
            rooms = look(folder)
            gates = tuple([gate._replace(name=clusters.name_of(gate.name)) for gate in rooms.gates])
            name = peer.cluster if peer else clusters.name_of(os.path.basename(folder))
            pid = peer.pid if peer and peer.is_alive() else 0
            cluster_id, guarantee = (peer.cluster_id, peer.guarantee) if peer else ("", "")
            found.append(ClusterView(name, cluster_id, pid, guarantee, rooms._replace(gates=gates)))
    return found


def names_in(folder: str) -> list[str]:
    """Of files that can be gates: nobody can open a gate whose name is not printable."""
    try:
        return [name for name in place.gates_in(folder) if name.isprintable()]
    except FileNotFoundError:
        return []
    except OSError as wrong:
        raise BadInput(f"cannot read {folder}: {wrong.strerror}") from wrong


def look_at(folder: str, gate: str) -> GateView | None:
    """The gate that Room(folder, gate) would open, or None if there is none. Raises BadInput if it cannot be read."""
    path = path_of_gate(folder, gate)
    m = snapshot(path)
    if m is None:
        return None
    try:
        found = view(m, gate, path, LiveSenses(folder))
    except (IndexError, OverflowError, ValueError) as wrong:  # a number that no change has stored
        raise BadInput(f"{path} is damaged ({wrong!r}): remove it if nobody uses the gate") from wrong
    except OSError as wrong:
        raise BadInput(f"cannot find out who uses {path}: {wrong.strerror}") from wrong
    if found.in_use and m[BOOT] != system.boot_id() and system.is_this_boot(m[BOOT]):
        raise system.OtherClock(path)
    return found


# The copy of a table.


def holders_at(path: str) -> list[Listed]:
    """The holders of the gate with this file, by slot, as far as they can be seen at once. Raises BadInput.

    It takes as long with many waiters as with none: they may all be late at the same time.
    """
    m = snapshot(path, GLANCE)
    if m is None:
        return []
    try:
        seats = holders(m, LiveSenses(os.path.dirname(path)))
        return [listed(m, seat, slots) for seat, slots in seats.items()]
    except DAMAGE as wrong:
        raise BadInput(f"{path} is damaged ({wrong!r}): remove it if nobody uses the gate") from wrong


def snapshot(path: str, patience: int = PATIENCE) -> Table | None:
    """A copy of the gate's table, or None if there is no gate. Raises BadInput if it is not usable."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    except OSError as wrong:
        raise BadInput(f"cannot read {path}: {wrong.strerror}") from wrong
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode) or os.fstat(fd).st_size > LARGEST:
            raise BadInput(f"{path} is not a gate file: remove it, or use another name")
        calls.lock(fd, patience, calls.clock())
        data = os.pread(fd, os.fstat(fd).st_size, 0)  # the file may have grown before the lock
    finally:
        os.close(fd)  # which also unlocks it
    return checked(path, data)


def checked(path: str, data: bytes) -> Table | None:
    m: Table = older.converted(copied(data))
    if not data.strip(b"\0") or (len(m) > MAGIC and m[MAGIC] == IS_BEING_MADE):
        return None  # its creator has not finished, or died
    wrong = table.why_unusable(m) if len(m) >= SLOTS else f"it is cut off: {len(data)} bytes"
    if wrong:
        raise BadInput(f"cannot use {path}: {wrong}; use another name, or remove it if it is a gate that nobody uses")
    if m[KEPT]:
        with suppress(*DAMAGE):
            keeping.end(m, Change(0, nobody_is_stopped))  # only in this copy
    return m


# What it says.


def view(m: Table, gate: str, path: str, senses: LiveSenses) -> GateView:
    holders, waiters, pins = living(m, senses)
    return GateView(
        name=gate,
        path=path,
        k=m[K],
        inside=tuple([visitor(m, senses, seat, slots) for seat, slots in holders.items()]),
        waiting=tuple([visitor(m, senses, seat, ()) for seat in waiters]),
        pins=tuple([m[seat + PID] for seat in pins]),
        counters=Counters(
            m[GRANTS], m[WAITED], m[LONGEST], m[LOSSES], tuple([m[HISTOGRAM + bucket] for bucket in range(BUCKETS)])
        ),
    )


def living(m: Table, senses: LiveSenses) -> tuple[dict[int, tuple[int, ...]], list[int], list[int]]:
    """The seats that are not of dead processes: the holders with their slots, the waiters in order, and the pins."""
    found: dict[int, list[int]] = {WAITING: [], PINNED: []}
    for seat in senses.living(m, links.all_seats(m)):
        if m[seat + STATE] in found:
            found[m[seat + STATE]].append(seat)
    return holders(m, senses), sorted(found[WAITING], key=lambda seat: m[seat + TICKET]), found[PINNED]


def holders(m: Table, senses: LiveSenses) -> dict[int, tuple[int, ...]]:
    """The seats of living processes that are inside, with their slots."""
    slots: dict[int, tuple[int, ...]] = {}
    for at in range(SLOTS, SLOTS + m[CAPACITY]):
        if m[at] and links.is_seat(m, m[at]):
            slots[m[at]] = (*slots.get(m[at], ()), at - SLOTS)
    living = set(senses.living(m, slots))
    return {
        seat: links.shown_slots(m, seat) if m[seat + GRANTED_BY] else taken
        for seat, taken in slots.items()
        # else half of a grant, which is no grant
        if m[seat + STATE] == INSIDE and len(taken) == m[seat + PERMITS] and seat in living
    }


def visitor(m: Table, senses: LiveSenses, seat: int, slots: tuple[int, ...]) -> Visitor:
    request = listed(m, seat, slots)
    return Visitor(
        request=request,
        visible=senses.is_visible(m, seat),
        stopped=request.stopped or senses.is_stopped(m, seat),
        left_behind=request.inside and senses.is_left_behind(m, seat),
    )
