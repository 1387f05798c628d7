"""One gate on one host, as one process uses it.

    with Room(folder, "gpu", k=3) as room:
        permit = room.acquire(timeout=5, permits=1, lease=60)      # None: not in time
        permit.slots, permit.fence, permit.is_valid()
        permit.release()

There is no thread and no socket. A request takes a bell and a seat; if it has to wait, it sleeps until its bell rings,
a process that it watches dies, or a tick is due (rules.py). Several threads may use one room.

This module is not compiled: between a compiled function that returns a permit and its caller, Ctrl-C could lose the
permit.
"""

from __future__ import annotations

import atexit
import os

from fairgate.errors import BadInput, FairgateError, ForkedPeer, GateClosed, GateStuck, ReentrantCall
from fairgate.room import bell as bells
from fairgate.room import links, rules
from fairgate.room.desk import Desk, Visit
from fairgate.room.file import RoomFile, files
from fairgate.room.layout import KEPT, MOST_SLOTS, OWNER, PERMITS, PID, K
from fairgate.room.permit import Permit
from fairgate.room.table import Change

TYPE_CHECKING = False  # see __init__.py
if TYPE_CHECKING:
    from fairgate.room.listing import Listed

SUFFIX = ".gate"
open_rooms: set[Room] = set()


class Room:
    def __init__(self, folder: str, gate: str, k: int = 0, create: bool = True, cluster: bool = False) -> None:
        """Open the gate, or create it; `k` is 0 if any will do. Raises BadInput, or KMismatch if it is in use.

        Without `create`, the gate must exist. `cluster`: it is a room of a cluster (guestbook.py).
        """
        self.folder = folder
        self.gate = gate
        self.k = k
        self.file = RoomFile(path_of_gate(folder, gate), k, create, cluster)
        self.desk = Desk(folder, gate, k, self.file)
        self.some_visit = self.desk.some_visit
        self.new_bell = self.desk.new_bell
        self.enter = self.desk.enter
        self.change = self.desk.change
        self.check_open = self.desk.check_open
        self.check_process = self.desk.check_process
        self.bells = self.desk.bells
        self.spare = self.desk.spare
        open_rooms.add(self)
        try:
            if (
                k and k != self.file.m[K] and not cluster
            ):  # else it need not be locked: a request makes sure of k anyway
                self.change(self.desk.agree)
            if self.file.claim_sweep("/" in gate):
                from fairgate.room.sweep import sweep  # noqa: PLC0415 (once in an hour)

                sweep(folder, "/" in gate)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Room:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Requests.

    def acquire(
        self, timeout: float | None = None, permits: int = 1, lease: float | None = None, note: str = ""
    ) -> Permit | None:
        """Wait for this many slots. Returns None if they were not free in time; a timeout of 0 does not wait.

        Raises BadInput if the gate has fewer slots, KMismatch if it is in use with another k, GateClosed if its file
        was removed.
        """
        visit = self.some_visit()
        try:
            if self.enter(visit, timeout, permits, lease, note):
                permit = Permit(visit)
                if self.desk.closed:
                    raise GateClosed(self.desk.closed)
                return permit
        except ReentrantCall:
            self.spare.append(visit)
            raise
        except BaseException:  # Ctrl-C: nobody would ever release it
            self.abandon(visit)
            raise
        self.spare.append(visit)
        return None

    def abandon(self, visit: Visit) -> None:
        """End the request."""
        try:
            self.desk.finish(visit.leave)
        except (GateClosed, ForkedPeer):  # closing has ended the request, and left the bell to the thread that waited
            visit.bell.close()
        except FairgateError:  # the lock is stuck, or the file is damaged
            self.desk.drop(visit.bell)
        else:
            self.spare.append(visit)

    # For people.

    def requests(self) -> list[Listed]:
        """All requests of living processes: the holders of valid permits by slot, then the waiters in order."""
        return self.change(self.listed)

    def listed(self, change: Change) -> list[Listed]:
        from fairgate.room.listing import listed  # noqa: PLC0415 (it imports typing)

        m = self.file.m
        holders, waiters = links.valid_holders(m, change.now), list(links.waiters(m))
        by_owner = {m[seat + OWNER]: seat for seat in holders + waiters}  # a process may have thousands
        dead = {owner for owner, seat in by_owner.items() if self.desk.is_gone(seat)}
        found = [listed(m, seat, links.shown_slots(m, seat)) for seat in holders if m[seat + OWNER] not in dead]
        return found + [listed(m, seat, ()) for seat in waiters if m[seat + OWNER] not in dead]

    def revoke(self, slot: int, fence: int = 0) -> bool:
        """End the permit in this slot, if it has this fence, or any. Its holder is told, and the next one let in."""
        return self.change(lambda change: rules.revoke(self.file.m, change, slot, fence))

    def resize(self, k: int) -> None:
        """Change k. If there are more holders, the gate waits for them to leave.

        Raises BadInput if a request that waits wants more permits than that.
        """
        if not 1 <= k <= MOST_SLOTS:
            raise BadInput(f"k must be 1..{MOST_SLOTS}, not {k}")
        self.change(lambda change: self.resized(change, k))

    def resized(self, change: Change, k: int) -> None:
        """Raises BadInput if a waiter wants more than this: it would keep all others waiting."""
        m = self.file.m
        seat = rules.resize(m, change, self.desk, k)
        if seat:
            wanted = f"pid {m[seat + PID]} waits for {m[seat + PERMITS]} permits"
            raise BadInput(f"gate {self.gate}: k cannot be {k} while {wanted}")

    def is_closed(self) -> bool:
        return self.file.fd < 0

    def close(self, why: str = "") -> None:
        """End the requests and permits of this object, and free what it has."""
        try:
            self.end(why)
        except ReentrantCall:
            self.desk.postponed.append(lambda: self.end(why))

    def end(self, why: str) -> None:
        if self.file.fd >= 0:
            self.desk.closed = why or f"gate {self.gate} was closed"  # first: no thread makes a request from now on
            bells = list(self.bells)  # other threads may remove theirs meanwhile
            used = set(bells).difference([visit.bell for visit in self.desk.spare])
            owners = {bell.owner for bell in bells}  # a slot that was kept may be entered at this moment
            try:
                if used or self.file.m[KEPT]:  # a change also ends that
                    self.change(lambda change: rules.abandon(self.file.m, change, owners))
            except (BadInput, GateClosed):  # a damaged file, or another thread was faster
                pass
            except GateStuck:
                for bell in used:
                    if not bell.busy:  # else its thread uses it
                        bell.close(remove=False)
            self.desk.exclude_changes(self.close_files)
            open_rooms.discard(self)

    def close_files(self) -> None:
        if self.is_closed():
            return
        busy = []
        for bell in list(self.bells):
            if bell.busy:
                bell.remove()  # its thread may never run again
                busy.append(bell)
            else:
                bell.close()
        self.desk.close_lines()
        self.file.close()
        for bell in busy:  # only now: its thread looks, finds the room closed, and closes the bell
            bell.ring()


def path_of_gate(folder: str, gate: str) -> str:
    """A name with a slash is the path of the gate's file."""
    return gate if "/" in gate else f"{folder}/{gate}{SUFFIX}"


def after_fork() -> None:
    """In the child: the inherited bells would keep the parent alive, and the inherited file its lock."""
    for room in open_rooms:
        room.desk.forked = True
        room.desk.renew()
        room.desk.close_lines()
        room.bells.clear()
        room.desk.spare.clear()
    open_rooms.clear()
    for file in list(files):
        file.drop()
    for bell in list(bells.ours):
        bell.close(remove=False)
    bells.forking.release()


def at_exit() -> None:
    """A process that ends without closing leaves nothing taken, and no bell behind."""
    for room in list(open_rooms):
        room.close()


os.register_at_fork(before=bells.forking.acquire, after_in_parent=bells.forking.release, after_in_child=after_fork)
atexit.register(at_exit)
