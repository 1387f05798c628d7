"""Sends frames to other peers: dials a peer on first use, and queues frames until the connection is up.

Everything runs under the engine's lock. From the engine's thread, frames go to the transport. From any other thread
they go straight to the socket if nothing is queued before them, otherwise through the loop. Order is preserved.
"""

import asyncio
from abc import abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager
from threading import get_ident

from fairgate.net.codec import Frame, encode
from fairgate.net.pipe import Pipe
from fairgate.net.transport import Transport
from fairgate.recovery.roster import Members


class Links:
    def __init__(self, transport: Transport, lock: AbstractContextManager[object]) -> None:
        self.transport = transport
        self.up: Mapping[int, Pipe] = transport.up
        self.lock = lock
        self.loop = asyncio.get_running_loop()
        self.thread = get_ident()
        self.addresses: dict[int, str] = {}  # of all other members
        self.dialled: set[int] = set()
        self.outgoing: list[tuple[int, Frame]] = []  # to be sent by the loop
        self.waiting: dict[int, list[Frame]] = {}  # until the connection is up

    def known(self, members: Members) -> None:
        self.addresses = {peer.id: peer.address for peer in members.peers if peer.id != self.transport.me}
        for peer in [peer for peer in self.dialled if peer not in self.addresses]:
            self.dialled.discard(peer)
            self.waiting.pop(peer, None)
            self.loop.call_soon(self.transport.hang_up, peer)

    def take(self, peer: int, frame: Frame) -> bool:
        """Whether this frame was for the links themselves, and is handled."""
        return False

    def send(self, peer: int, frame: Frame) -> None:
        if self.outgoing:
            self.outgoing.append((peer, frame))
        elif get_ident() == self.thread:
            self.transmit(peer, frame)
        elif not self.send_now(peer, frame):
            self.loop.call_soon_threadsafe(self.flush)  # before the append, so that no frame is left without a flush
            self.outgoing.append((peer, frame))

    def send_now(self, peer: int, frame: Frame) -> bool:
        """False if the peer is not up or something is queued before this frame."""
        pipe = self.up.get(peer)
        return pipe is not None and pipe.write_now(encode(frame))

    def flush(self) -> None:
        with self.lock:
            outgoing, self.outgoing = self.outgoing, []
            for peer, frame in outgoing:
                self.transmit(peer, frame)

    def transmit(self, peer: int, frame: Frame) -> None:
        if not self.transport.send(peer, frame) and peer in self.addresses:
            self.keep(peer, frame)
            self.dial(peer)

    def keep(self, peer: int, frame: Frame) -> None:
        self.waiting.setdefault(peer, []).append(frame)

    def dial(self, peer: int) -> None:
        """Call it under the lock, from any thread."""
        if peer not in self.dialled and peer in self.addresses:
            self.dialled.add(peer)
            self.loop.call_soon_threadsafe(self.dial_now, peer, self.addresses[peer])

    @abstractmethod
    def dial_now(self, peer: int, address: str) -> None:
        """Dials a member, unless it has left. Runs on the loop."""

    def send_waiting(self, peer: int) -> None:
        with self.lock:
            for frame in self.waiting.pop(peer, []):
                self.transport.send(peer, frame)
