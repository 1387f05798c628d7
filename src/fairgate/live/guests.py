"""The guests of a standing peer: processes of this host that wait in the rooms of the cluster (room/guestbook.py).

    with Guests(engine, "fairgate") as guests:      # in any thread but the engine's
        ...
        guests.drain(30)                            # lets nobody in, and waits for those inside

The peer serves every room in the cluster's directory on this host (room/clusters.py), on the loop of its engine. A
guest that opens a new one rings the doorbell, which the description in that directory names.
"""

import asyncio
import logging
import os
import resource
import time
from typing import Self

from fairgate.arguments import SECOND
from fairgate.errors import BadInput
from fairgate.live.engine import LiveEngine
from fairgate.live.guest_room import GuestRoom
from fairgate.live.resting import IDLE_SECONDS, MOST_IDLE
from fairgate.room import calls
from fairgate.room.bell import Bell
from fairgate.room.clusters import StandingPeer, describe, make_folder
from fairgate.room.file import RoomFile
from fairgate.room.folder import NOBODY
from fairgate.room.room import SUFFIX, path_of_gate

TICK_SECONDS = 1.0  # how often to make up for lost rings, and to look for rooms
POLL_SECONDS = 0.02
MOST_REMOVED = 256  # rooms, in one tick
PAUSE = 20  # times as long as a look for new rooms: the loop does other things before the next one

log = logging.getLogger("fairgate.live")


class Guests:
    def __init__(self, engine: LiveEngine, cluster: str, group: int = NOBODY) -> None:
        """Raises BadInput if the directory cannot be used, or this host has another standing peer in the cluster."""
        self.engine = engine
        self.cluster = cluster
        self.folder = make_folder(cluster, group)
        self.rooms: dict[str, GuestRoom] = {}  # by file
        self.opening: set[str] = set()  # files
        self.unusable: set[str] = set()  # files that were complained about
        self.draining = False
        self.closed = False
        self.told: tuple[object, ...] = ()  # what the description says
        self.ticker: asyncio.TimerHandle | None = None
        self.look: asyncio.TimerHandle | None = None  # for new rooms, since the doorbell was rung
        self.next_look = 0  # not before this time
        raise_file_limit()

    def __enter__(self) -> Self:
        asyncio.run_coroutine_threadsafe(self.begin(), self.engine.loop).result()
        return self

    def __exit__(self, *how: object) -> None:
        if not self.engine.closed:
            asyncio.run_coroutine_threadsafe(self.end(), self.engine.loop).result()

    def drain(self, seconds: float) -> bool:
        """Let nobody else in, and wait for the guests inside. False if some of them stayed longer than that."""
        until = time.monotonic() + seconds
        self.engine.loop.call_soon_threadsafe(self.begin_drain)
        while (left := until - time.monotonic()) > 0:
            if self.draining and not self.count_inside():
                return True
            time.sleep(min(POLL_SECONDS, left))
        return False

    def count_inside(self) -> int:
        return sum([len(room.book.inside) for room in list(self.rooms.values())])

    # On the loop.

    async def begin(self) -> None:
        self.doorbell = Bell(self.folder)
        self.engine.loop.add_reader(self.doorbell.fd, self.rung)
        self.describe()
        self.engine.on_lease.append(self.lease_changed)
        self.tick()

    def rung(self) -> None:
        """A guest has opened a room. With many rooms, a look at each ring would keep the loop busy."""
        calls.read_tickets(self.doorbell.fd)
        if self.look is None:
            pause = max(self.next_look - calls.clock(), 0) / SECOND
            self.look = self.engine.loop.call_later(pause, self.look_for_rooms)

    def look_for_rooms(self) -> None:
        self.look = None
        began = calls.clock()  # the time of uvloop stands still meanwhile
        self.find_rooms()
        ended = calls.clock()
        self.next_look = ended + PAUSE * (ended - began)

    def tick(self) -> None:
        self.ticker = self.engine.loop.call_later(TICK_SECONDS, self.tick)
        self.forget_rooms()
        self.find_rooms()
        for room in self.rooms.values():
            room.tick()
        self.remove_rooms()
        try:
            self.describe()
        except BadInput as wrong:  # guests of before go on; it is not tried again before something else changes
            log.error("%s", wrong)

    def remove_rooms(self) -> None:
        """Those without a request for as long as it takes until a gate rests (resting.py), and the oldest of many."""
        quiet = sorted([room for room in self.rooms.values() if room.quiet], key=lambda room: -room.quiet)
        many = len(quiet) - MOST_IDLE
        for i, room in enumerate(quiet[:MOST_REMOVED]):
            if i < many or room.quiet * TICK_SECONDS >= IDLE_SECONDS:
                room.remove_if_unused()

    def forget_rooms(self) -> None:
        """Those whose files were removed."""
        for file in [file for file, room in self.rooms.items() if room.closed or not room.desk.file.is_linked()]:
            self.rooms.pop(file).close()

    def find_rooms(self) -> None:
        for entry in os.listdir(self.folder):
            file = entry.removesuffix(SUFFIX)
            known = self.rooms.get(file)
            if file != entry and file not in self.opening and (known is None or known.closed):
                self.opening.add(file)
                self.engine.spawn(self.open(file))

    async def open(self, file: str) -> None:
        """In a thread of its own: opening takes the lock of the file, for which many guests may be waiting."""
        try:
            table = await self.engine.loop.run_in_executor(None, open_table, path_of_gate(self.folder, file))
            if self.closed:
                table.close()
                return
            self.rooms[file] = GuestRoom(self, self.folder, file, table)
            self.unusable.discard(file)
        except BadInput as wrong:
            if file not in self.unusable:
                self.unusable.add(file)
                log.error("gate %s: %s", file, wrong)
        finally:
            self.opening.discard(file)

    def describe(self) -> None:
        """Write down who lets guests in here, whether it can, and the addresses of the members, if that has changed."""
        engine = self.engine
        addresses = tuple([peer.address for peer in engine.members.peers])
        guarantee = engine.membership.guarantee
        told = (engine.me, guarantee, addresses)
        if told != self.told:
            self.told = told
            self.standing = StandingPeer(
                self.folder,
                self.cluster,
                engine.members.cluster,
                engine.me,
                engine.pid,
                self.doorbell.owner,
                guarantee,
                addresses,
            )
            describe(self.standing)

    def lease_changed(self) -> None:
        self.engine.loop.call_soon_threadsafe(self.renew)

    def renew(self) -> None:
        for room in self.rooms.values():
            room.lease_changed()

    def begin_drain(self) -> None:
        self.draining = True
        for room in self.rooms.values():
            room.withdraw_all()

    async def end(self) -> None:
        self.closed = True
        if self.ticker is not None:
            self.ticker.cancel()
        if self.look is not None:
            self.look.cancel()
        if self.lease_changed in self.engine.on_lease:
            self.engine.on_lease.remove(self.lease_changed)
        for room in self.rooms.values():
            room.leave()
        self.engine.loop.remove_reader(self.doorbell.fd)
        self.doorbell.close()


def open_table(path: str) -> RoomFile:
    """Raises BadInput if it cannot be used."""
    return RoomFile(path, 0, create=False, cluster=True)


def raise_file_limit() -> None:
    """A peer has a bell of every guest open."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
