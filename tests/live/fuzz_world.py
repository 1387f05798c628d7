"""Peers of one gate in one process, without sockets: real gates and real traffic, frames in queues.

A world makes everything that the engines, the roster and the network would do: it delivers frames in order between
each pair of peers, gives the gate a new view when seats are added or a gate asks for one, and lets users come and go.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Coroutine
from typing import Any

from fairgate.core.ids import identity
from fairgate.live.engine_lock import EngineLock
from fairgate.live.gate import LiveGate
from fairgate.live.links import Links
from fairgate.live.live_protocols import make_of, options_of
from fairgate.live.local_messages import LocalMessages, deliver
from fairgate.live.no_journals import NO_JOURNALS, NoJournals
from fairgate.live.ticket import INSIDE, WAITING, Ticket
from fairgate.live.traffic import Traffic
from fairgate.net.codec import CodecError, Decoder, Frame, encode
from fairgate.recovery.roster import GateRecord

GATE = "gate"
REQUESTS = 2  # of one peer at a time
MOST_RECORDED = 500
MOST_CALM_VIEWS = 20  # after an attack


class QueuedLinks(Links):
    """Links that put frames into the world's queues."""

    def __init__(self, world: World, me: int) -> None:
        self.world = world
        self.me = me

    def send(self, peer: int, frame: Frame) -> None:
        self.world.sent(self.me, peer, frame)

    def dial_now(self, peer: int, address: str) -> None: ...


class Host:
    """What a peer's gate and traffic need of an engine."""

    journals: NoJournals = NO_JOURNALS

    @staticmethod
    def mistake(wrong: Exception) -> None:
        raise wrong

    def __init__(self, world: World, me: int, k: int, protocol: str) -> None:
        self.world = world
        self.me = me
        self.lock = EngineLock()
        self.gates: dict[str, LiveGate] = {}
        self.local: LocalMessages = deque()
        self.traffic = Traffic(self, self.other_frame)
        self.traffic.me = me
        self.traffic.links = QueuedLinks(world, me)
        self.gate = LiveGate(self, GATE, k, protocol, make_of(protocol, k), options_of(protocol))
        self.gates[GATE] = self.gate
        self.tickets: list[Ticket] = []

    def deliver_local(self) -> None:
        deliver(self.local, self.gates)

    def other_frame(self, peer: int, frame: Frame) -> None:
        raise CodecError("not a message of a gate")

    def sit(self, gate: LiveGate) -> None:
        self.world.wants_view = True

    def renew(self, gate: LiveGate) -> None:
        self.world.wants_view = True

    def spoiled(self, gate: LiveGate) -> None:
        self.world.spoiled += 1

    def census_is_over(self) -> None: ...

    def lease_begins(self, gate: LiveGate, ticket: Ticket) -> None: ...

    def abandoned(self, gate: LiveGate, ticket: Ticket) -> None: ...

    def from_outside(self, work: Coroutine[Any, Any, None]) -> None:
        work.close()

    async def repair(self, gate: LiveGate) -> None: ...


class World:
    def __init__(self, seed: object, protocol: str, k: int, peers: int) -> None:
        self.random = random.Random(str(seed))
        self.k = k
        self.protocol = protocol
        self.view = 1
        self.wants_view = False
        self.traitor = 0  # the peer that does not keep to the protocol
        self.spoiled = 0
        self.entries = 0
        self.queues: dict[tuple[int, int], deque[bytes]] = {}
        self.recorded: list[tuple[int, Frame]] = []  # real frames, and who received them
        self.seats: dict[int, int] = {}  # seat -> host
        self.hosts = {me: Host(self, me, k, protocol) for me in range(1, peers + 1)}

    # The network.

    def sent(self, src: int, dst: int, frame: Frame) -> None:
        self.queues.setdefault((src, dst), deque()).append(encode(frame))
        if len(self.recorded) < MOST_RECORDED:
            self.recorded.append((dst, frame))
        else:
            self.recorded[self.random.randrange(MOST_RECORDED)] = (dst, frame)

    def deliver_one(self) -> bool:
        """Delivers a frame of a random pair of peers. False if there is none."""
        pairs = sorted(pair for pair, queue in self.queues.items() if queue)
        if not pairs:
            return False
        src, dst = self.random.choice(pairs)
        self.receive(dst, src, self.queues[src, dst].popleft())
        return True

    def receive(self, dst: int, src: int, data: bytes) -> str:
        """Returns why the frame was refused. It costs the connection, but the channel below loses nothing."""
        host = self.hosts[dst]
        try:
            for frame in Decoder().feed(data):
                if self.random.random() < 0.5:
                    host.traffic.on_frame(src, frame)
                else:
                    assert host.traffic.on_frame_elsewhere(src, frame) or frame[0] != "m"
        except CodecError as wrong:
            return str(wrong)
        finally:
            host.traffic.on_quiet()
            self.settle()
        return ""

    # Views.

    def settle(self) -> None:
        """Repairs gates that need it, and makes a new view if one is wanted. Then checks who is inside."""
        for host in self.hosts.values():
            if host.gate.broken is not None:
                with host.lock:
                    host.gate.repair()
        if self.wants_view:
            self.wants_view = False
            self.new_view()
        self.check()

    def new_view(self) -> None:
        self.view += 1
        hosts = []
        for host in self.hosts.values():
            host.gate.standing = False
            if host.gate.seats:
                hosts.append((host.me, host.gate.seats))
        self.seats = {identity(peer, seat): peer for peer, seats in hosts for seat in range(seats)}
        record = GateRecord(GATE, self.k, self.protocol, self.view, tuple(hosts))
        for host in self.hosts.values():
            with host.lock:
                host.gate.adopt(record)
                host.deliver_local()
            host.traffic.on_quiet()

    # Users.

    def acquire(self, host: Host) -> None:
        ticket = Ticket()
        host.tickets.append(ticket)
        with host.lock:
            host.gate.acquire(ticket)
            host.deliver_local()
        self.settle()

    def release(self, host: Host, ticket: Ticket) -> None:
        self.entries += ticket.state == INSIDE
        host.tickets.remove(ticket)
        with host.lock:
            host.gate.release(ticket)
            host.deliver_local()
        self.settle()

    def act(self) -> None:
        """Delivers a frame, or lets a user ask, leave or give up."""
        host = self.random.choice(list(self.hosts.values()))
        host.tickets = [one for one in host.tickets if one.state in (INSIDE, WAITING)]
        what = self.random.random()
        if what < 0.2 and len(host.tickets) < REQUESTS:
            self.acquire(host)
        elif what < 0.3 and host.tickets:
            self.release(host, self.random.choice(host.tickets))
        else:
            self.deliver_one()

    def inside(self) -> list[Ticket]:
        """Those inside at all peers that keep to the protocol."""
        hosts = [host for host in self.hosts.values() if host.me != self.traitor]
        return [one for host in hosts for one in host.tickets if one.state == INSIDE]

    def check(self) -> None:
        inside = self.inside()
        slots = [one.slot for one in inside if one.slot >= 0]
        assert len(inside) <= self.k, f"{len(inside)} are inside"
        assert len(slots) == len(set(slots)), f"two are in one slot: {slots}"

    def calm_down(self, forged: tuple[int, ...] = ()) -> None:
        """After the attack: new views, and then everybody gets in once.

        A gate keeps messages for views that it does not know yet. A member that forges those breaks these views, too,
        and members are trusted not to. So the views here have numbers that were not forged: neither one of `forged`,
        nor the number after that of a view during the attack.
        """
        while any(0 <= number - self.view <= MOST_CALM_VIEWS for number in forged):
            self.view += 1
        for _ in range(2):
            self.wants_view = True
            self.settle()
        for _ in range(2):
            for host in self.hosts.values():
                for ticket in [one for one in host.tickets if one.state in (INSIDE, WAITING)]:
                    self.release(host, ticket)
        for host in self.hosts.values():
            self.acquire(host)
        waiting = [(host, host.tickets[-1]) for host in self.hosts.values()]
        for _ in range(100_000):
            for host, ticket in waiting:
                if ticket.state == INSIDE:
                    self.release(host, ticket)
            waiting = [(host, ticket) for host, ticket in waiting if ticket.state == WAITING]
            if not waiting or not self.deliver_one():
                break
        assert not waiting, f"{len(waiting)} requests were never granted after the attack"
