"""The cost of a frame: ns to encode and decode it, and its round trip between two processes over a Unix socket.

The round trip is compared with a bare echo on the same event loop: an asyncio.Protocol that writes back what it reads,
with no framing at all. Rounds are short and alternate, so that anything that slows the machine down affects all alike.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import cast

from rich.console import Console
from rich.table import Table

from fairgate.net import codec
from fairgate.net.address import UnixAddress
from fairgate.net.codec import Decoder, Frame, encode
from fairgate.net.loop import HAS_UVLOOP, new_loop
from fairgate.net.transport import Transport

FRAME = (1, "gpu", 123456789012345678, 98765432109876543, ("ch.data", 17, ("fk.token", 2, 123456789012)))
ROUNDS, PINGS, FRAMES = 40, 500, 5_000
SERVER, CLIENT = 1, 2


class BareEcho(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.link = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self.link.write(data)


class BarePing(BareEcho):
    def __init__(self, data: bytes, count: int) -> None:
        self.data, self.left = data, count
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def data_received(self, data: bytes) -> None:
        self.left -= 1
        if self.left:
            self.link.write(self.data)
        else:
            self.done.set_result(None)


class Peer:
    """The server sends every frame back; the client sends each again until it came back `count` times."""

    def __init__(self, me: int, count: int = 0) -> None:
        self.up, self.done = asyncio.Event(), asyncio.Event()
        self.left = count
        self.transport = Transport(me, "bench", self)

    def may_be(self, peer: int, principal: str) -> bool:
        return True

    def is_member(self, peer: int) -> bool:
        return True

    def on_up(self, peer: int) -> None:
        self.up.set()

    def on_down(self, peer: int, why: str) -> None:
        pass

    def on_quiet(self) -> None:
        pass

    def on_pressure(self, peer: int, full: bool) -> None:
        pass

    def on_frame(self, peer: int, frame: Frame) -> None:
        if self.transport.me == CLIENT:
            self.left -= 1
            if not self.left:
                self.done.set()
                return
        self.transport.send(peer, frame)


async def serve(kind: str, path: str) -> None:
    loop = asyncio.get_running_loop()
    if kind == "bare":
        await loop.create_unix_server(BareEcho, path)
    else:
        Peer(SERVER).transport.listen(UnixAddress(path))
    print("ready", flush=True)
    await loop.run_in_executor(None, sys.stdin.read)


async def bare_ping(path: str) -> float:
    ping = BarePing(encode(FRAME), PINGS)
    await asyncio.get_running_loop().create_unix_connection(lambda: ping, path)
    start = time.perf_counter()
    ping.link.write(ping.data)
    await ping.done
    taken = time.perf_counter() - start
    ping.link.close()
    return taken / PINGS


async def peer_ping(path: str) -> float:
    peer = Peer(CLIENT, PINGS)
    peer.transport.dial(UnixAddress(path), SERVER)
    await peer.up.wait()
    start = time.perf_counter()
    peer.transport.send(SERVER, FRAME)
    await peer.done.wait()
    taken = time.perf_counter() - start
    await peer.transport.close()
    return taken / PINGS


PINGERS: dict[str, Callable[[str], Awaitable[float]]] = {"bare": bare_ping, "peer": peer_ping}


def measured(kind: str, fast: bool, path: str) -> float:
    async def main() -> float:
        return await PINGERS[kind](path)

    with asyncio.Runner(loop_factory=lambda: new_loop(fast)) as runner:
        return runner.run(main())


def round_trips(folder: Path) -> dict[tuple[str, bool], list[float]]:
    ways = [(kind, fast) for fast in ([False, True] if HAS_UVLOOP else [False]) for kind in PINGERS]
    paths = {way: str(folder / f"{way[0]}{way[1]:d}.sock") for way in ways}
    servers = [start_server(kind, fast, paths[kind, fast]) for kind, fast in ways]
    try:
        taken: dict[tuple[str, bool], list[float]] = {way: [] for way in ways}
        for _ in range(ROUNDS):
            for way in ways:
                taken[way].append(measured(*way, paths[way]))
        return taken
    finally:
        for server in servers:
            server.communicate()


def bare_round_trip(folder: Path) -> float:
    """Median seconds of some bare round trips: a lower bound for anything that needs an answer."""
    path = str(folder / "bare.sock")
    server = start_server("bare", HAS_UVLOOP, path)
    try:
        return median([measured("bare", HAS_UVLOOP, path) for _ in range(ROUNDS // 4)])
    finally:
        server.communicate()


def start_server(kind: str, fast: bool, path: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "bench.net", kind, str(int(fast)), path]
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    server.stdout.readline()
    return server


def nanoseconds(step: Callable[[], object]) -> float:
    """CPU time of one call in ns, the best of several rounds."""
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.process_time_ns()
        for _ in range(FRAMES):
            step()
        best = min(best, (time.process_time_ns() - start) / FRAMES)
    return best


def codec_costs(console: Console) -> None:
    data, decoder = encode(FRAME), Decoder()
    kind = "compiled" if not str(codec.__file__).endswith(".py") else "interpreted"
    table = Table(f"a frame of {len(data)} bytes, {kind}", "ns, CPU")
    table.add_row("encode", f"{nanoseconds(lambda: encode(FRAME)):.0f}")
    table.add_row("decode", f"{nanoseconds(lambda: decoder.feed(data)):.0f}")
    table.add_row("decode, ten at once, each", f"{nanoseconds(lambda: decoder.feed(data * 10)) / 10:.0f}")
    table.add_row("msgspec alone: encode", f"{nanoseconds(lambda: codec.write(FRAME)):.0f}")
    body = data[5:]  # without length and version
    table.add_row("msgspec alone: decode", f"{nanoseconds(lambda: codec.read_fast(body)):.0f}")
    console.print(table)


def main() -> None:
    console = Console()
    codec_costs(console)
    with TemporaryDirectory() as folder:
        taken = round_trips(Path(folder))
    heads = ("bare echo, µs", "peers, µs", "peers / bare", "fastest: bare", "peers", "ratio")
    table = Table(f"round trip: {ROUNDS} rounds, medians", *heads)
    for fast in (False, True):
        if ("bare", fast) in taken:
            bare, peer = taken["bare", fast], taken["peer", fast]
            ratio = median(own / other for own, other in zip(peer, bare, strict=True))
            name = "uvloop" if fast else "asyncio"
            middle = (f"{median(bare) * 1e6:.1f}", f"{median(peer) * 1e6:.1f}", f"{ratio:.2f}")
            best = (f"{min(bare) * 1e6:.1f}", f"{min(peer) * 1e6:.1f}", f"{min(peer) / min(bare):.2f}")
            table.add_row(name, *middle, *best)
    console.print(table)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        with asyncio.Runner(loop_factory=lambda: new_loop(bool(int(sys.argv[2])))) as runner:
            runner.run(serve(sys.argv[1], sys.argv[3]))
    else:
        main()
