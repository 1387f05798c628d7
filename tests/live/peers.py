"""Several transports on one loop with real sockets between them, and raw connections that can send anything."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any

from fairgate.net.address import Address, UnixAddress
from fairgate.net.codec import Decoder, Frame, encode
from fairgate.net.connection import HELLO, PROTOCOL, READY
from fairgate.net.loop import new_loop
from fairgate.net.secret import Secret
from fairgate.net.transport import Transport

SOON = 30.0  # seconds: a test that waits this long has failed
CLUSTER = "test"
SECRET = Secret(b"a secret of tests")


def run(main: Coroutine[Any, Any, None], fast: bool = False) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(SOON):
            await main

    with asyncio.Runner(loop_factory=lambda: new_loop(fast)) as runner:
        runner.run(bounded())


class Peer:
    """A transport, and all events that its handler received."""

    def __init__(self, me: int, cluster: str = CLUSTER, **options: Any) -> None:
        self.told: list[tuple[Any, ...]] = []
        self.news = asyncio.Event()
        self.answer: Callable[[int, Frame], None] | None = None
        self.principals: list[tuple[int, str]] = []  # as asked by `may_be`
        self.members: set[int] = set()
        self.transport = Transport(me, cluster, self, **{"secret": SECRET} | options)
        self.me = me

    def tell(self, *what: Any) -> None:
        self.told.append(what)
        self.news.set()

    def may_be(self, peer: int, principal: str) -> bool:
        self.principals.append((peer, principal))
        return True

    def is_member(self, peer: int) -> bool:
        return peer in self.members

    def on_up(self, peer: int) -> None:
        self.tell("up", peer)

    def on_frame(self, peer: int, frame: Frame) -> None:
        self.tell("frame", peer, frame)
        if self.answer is not None:
            self.answer(peer, frame)

    def on_down(self, peer: int, why: str) -> None:
        self.tell("down", peer, why)

    def on_quiet(self) -> None:
        pass

    def on_pressure(self, peer: int, full: bool) -> None:
        self.tell("pressure", peer, full)

    async def until(self, *what: Any, times: int = 1) -> tuple[Any, ...]:
        """Waits until an event that starts like this has occurred so many times, and returns the last of them."""
        while True:
            found = [told for told in self.told if told[: len(what)] == what]
            if len(found) >= times:
                return found[times - 1]
            self.news.clear()
            await self.news.wait()

    def listen(self, folder: Path) -> Address:
        folder.chmod(0o700)
        return self.transport.listen(UnixAddress(str(folder / f"{self.me}.sock")))

    def frames(self) -> list[Frame]:
        return [told[2] for told in self.told if told[0] == "frame"]


async def until(condition: Callable[[], bool]) -> None:
    """Polls at every turn of the loop until the condition holds. The test as a whole has a time limit."""
    while not condition():
        await asyncio.sleep(0)


async def close_all(*peers: Peer) -> None:
    for peer in peers:
        await peer.transport.close()


class Stranger:
    """A raw connection to a peer's socket."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.decoder = Decoder()

    @classmethod
    async def at(cls, address: Address) -> Stranger:
        if isinstance(address, UnixAddress):
            return cls(*await asyncio.open_unix_connection(address.path))
        return cls(*await asyncio.open_connection(address.host, address.port))

    def say(self, data: bytes) -> None:
        self.writer.write(data)

    async def answers(self) -> list[Frame]:
        """All frames received until the connection is closed."""
        try:
            return self.decoder.feed(await self.reader.read())
        except ConnectionResetError:
            return []

    async def greet(self, me: int) -> None:
        self.say(hello(me))
        while not self.decoder.feed(await self.reader.read(1000)):
            pass
        self.say(encode((READY,)))

    async def close(self) -> None:
        self.writer.close()
        await quietly(self.writer.wait_closed())


def leave_dead_socket(path: Path) -> None:
    """Leaves what a killed process leaves: the file of a socket that nobody has open."""
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))


async def quietly(wait: Awaitable[None]) -> None:
    with contextlib.suppress(OSError):
        await wait


def hello(me: int, cluster: str = CLUSTER, version: int = PROTOCOL, wanted: int = -1) -> bytes:
    return encode((HELLO, version, cluster, me, wanted))


def lines(records: list[logging.LogRecord]) -> list[str]:
    return [record.getMessage() for record in records if record.name.startswith("fairgate")]
