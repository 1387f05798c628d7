"""Frames to other peers: dialled when they are first needed, kept until the connection is up.

All under the engine's lock. From the engine's thread frames go to the transport; from any other straight to the socket
if nothing is before them, else by way of the loop. They arrive in the order of sending.
"""

import asyncio
from collections.abc import Mapping
from contextlib import AbstractContextManager
from threading import get_ident

from fairgate.net.address import UnixAddress, parse_address
from fairgate.net.codec import Frame, encode
from fairgate.net.pipe import Pipe
from fairgate.net.roster import Members
from fairgate.net.transport import Transport


class Links:
    def __init__(self, transport: Transport, lock: AbstractContextManager[object]) -> None:
        self.transport = transport
        self.up: Mapping[int, Pipe] = transport.up
        self.lock = lock
        self.loop = asyncio.get_running_loop()
        self.thread = get_ident()
        self.addresses: dict[int, str] = {}  # of the peers that there are
        self.dialled: set[int] = set()
        self.outgoing: list[tuple[int, Frame]] = []  # by way of the loop
        self.waiting: dict[int, list[Frame]] = {}  # for a connection

    def known(self, members: Members) -> None:
        self.addresses = {peer.id: peer.socket for peer in members.peers if peer.id != self.transport.me}
        for peer in [peer for peer in self.dialled if peer not in self.addresses]:
            self.dialled.discard(peer)
            self.waiting.pop(peer, None)
            self.loop.call_soon(self.transport.hang_up, peer)

    def send(self, peer: int, frame: Frame) -> None:
        if self.outgoing:
            self.outgoing.append((peer, frame))
        elif get_ident() == self.thread:
            self.transmit(peer, frame)
        elif not self.send_now(peer, frame):
            self.loop.call_soon_threadsafe(self.flush)  # it waits for the lock; a frame without it would wait for ever
            self.outgoing.append((peer, frame))

    def send_now(self, peer: int, frame: Frame) -> bool:
        """False: it is not up, or something else is before it."""
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
        """Under the lock, from any thread."""
        if peer not in self.dialled and peer in self.addresses:
            self.dialled.add(peer)
            self.loop.call_soon_threadsafe(self.dial_now, peer, self.addresses[peer])

    def dial_now(self, peer: int, address: str) -> None:
        if peer in self.dialled:
            # On one host, who has left is known by the roster: that it does not answer meanwhile is nothing to tell.
            here = address.startswith("/")
            self.transport.dial(UnixAddress(address) if here else parse_address(address), peer, quiet=here)

    def take(self, peer: int, frame: Frame) -> bool:
        """Is it one of the links' own? There are none."""
        return False

    def on_up(self, peer: int) -> None:
        with self.lock:
            for frame in self.waiting.pop(peer, []):
                self.transport.send(peer, frame)
