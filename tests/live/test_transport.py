"""Connections between peers: greeting, order, ties, reconnecting, pressure, the end. Real sockets, both loops."""

from __future__ import annotations

import asyncio
import gc
import os
import random
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from fairgate.errors import BadInput
from fairgate.net.address import TcpAddress, UnixAddress, parse_address
from fairgate.net.codec import LIMIT, CodecError, Frame, encode
from fairgate.net.connection import HIGH, MOST
from fairgate.net.system import Wire
from tests.live.peers import SOON, Peer, Stranger, close_all, leave_dead_socket, run, until

LOOPBACK = TcpAddress("127.0.0.1", 0)


@pytest.fixture(params=["asyncio", "uvloop"])
def fast(request: pytest.FixtureRequest) -> bool:
    if request.param == "uvloop":
        pytest.importorskip("uvloop")
    return bool(request.param == "uvloop")


@pytest.mark.parametrize("kind", ["unix", "tcp"])
def test_two_peers_talk_in_order(kind: str, fast: bool, tmp_path: Path) -> None:
    async def main() -> None:
        one, two = Peer(1), Peer(2)
        address = one.listen(tmp_path) if kind == "unix" else one.transport.listen(LOOPBACK)
        two.transport.dial(address)
        await two.until("up", 1)
        await one.until("up", 2)
        sent = [("ping", number, (b"x", True)) for number in range(500)] + [("long", "x" * (LIMIT - 100))]
        for frame in sent:
            assert one.transport.send(2, frame)
            assert two.transport.send(1, frame)
        await one.until("frame", times=len(sent))
        await two.until("frame", times=len(sent))
        assert one.frames() == two.frames() == sent
        await two.transport.close()
        assert (await one.until("down", 2))[2] == "it closed the connection"
        assert not one.transport.send(2, ("too late",))
        assert not two.transport.send(1, ("too late",))
        assert [told[0] for told in two.told if told[0] in ("up", "down")] == ["up"]  # no events after its own close
        await one.transport.close()

    run(main(), fast)


def test_frames_sent_before_close_arrive(fast: bool, tmp_path: Path) -> None:
    async def main() -> None:
        one, two = Peer(1), Peer(2)
        two.transport.dial(one.listen(tmp_path))
        await two.until("up", 1)
        sent = [("x" * 1000, number) for number in range(2000)]  # far more than the kernel buffers
        for frame in sent:
            two.transport.send(1, frame)
        await two.transport.close()
        await one.until("down", 2)
        assert one.frames() == sent
        await one.transport.close()

    run(main(), fast)


def have_one_connection(*peers: Peer) -> bool:
    return all(len(peer.transport.connections) == 1 for peer in peers)


@pytest.mark.parametrize("small_dials_first", [True, False])
def test_both_dial_at_once_and_one_connection_stays(small_dials_first: bool, fast: bool, tmp_path: Path) -> None:
    async def main() -> None:
        for start in range(1, 40, 2):
            one, two = Peer(start), Peer(start + 1)
            where = {peer: peer.listen(tmp_path) for peer in (one, two)}
            first, second = (one, two) if small_dials_first else (two, one)
            first.transport.dial(where[second], second.me)
            for _ in range(start // 2):  # the second starts a little later each time
                await asyncio.sleep(0)
            second.transport.dial(where[first], first.me)
            await one.until("up", two.me)
            await two.until("up", one.me)
            await until(partial(have_one_connection, one, two))
            for peer, other in ((one, two), (two, one)):
                assert peer.transport.send(other.me, ("still there",))
            for peer in (one, two):
                await peer.until("frame")
                assert [told[0] for told in peer.told] == ["up", "frame"]
            await close_all(one, two)

    run(main(), fast)


def test_everybody_dials_everybody_and_connections_break(fast: bool, tmp_path: Path) -> None:
    """All pairs are connected, each by exactly one connection, and both sides agree on which one."""
    count = 8
    rng = random.Random(1)

    async def main() -> None:
        peers = [Peer(me) for me in rng.sample(range(1, 1000), count)]
        where = {peer.me: peer.listen(tmp_path) for peer in peers}
        for peer in peers:
            for other in peers:
                if other is not peer:
                    peer.transport.dial(where[other.me], other.me)

        def meshed() -> bool:
            return all(
                len(peer.transport.connections) == len(peer.transport.up) == count - 1
                and all(link.up for link in peer.transport.connections)
                for peer in peers
            )

        for _ in range(5):
            await until(meshed)
            for peer in rng.sample(peers, 3):
                rng.choice(list(peer.transport.connections)).link.abort()
            await until(lambda: not meshed())
        await until(meshed)
        for peer in peers:
            for neighbour in peer.transport.up:
                assert peer.transport.send(neighbour, ("hello from", peer.me))
        for peer in peers:
            await peer.until("frame", times=count - 1)
            ups = [sum(told[:2] == (what, other) for told in peer.told) for what in ("up", "down") for other in where]
            half = len(ups) // 2
            assert [up - down for up, down in zip(ups[:half], ups[half:], strict=True)] == [
                int(other != peer.me) for other in where
            ]
        await close_all(*peers)

    run(main(), fast)


def test_ups_and_downs_alternate_when_a_peer_comes_back_before_it_was_missed(fast: bool, tmp_path: Path) -> None:
    async def main() -> None:
        one = Peer(1)
        address = one.listen(tmp_path)
        strangers = []
        for _ in range(3):
            strangers.append(await Stranger.at(address))
            await strangers[-1].greet(7)
            await one.until("up", times=len(strangers))
        assert one.told == [("up", 7), *[("down", 7, "a new connection replaces it"), ("up", 7)] * 2]
        await one.transport.close()
        for stranger in strangers:
            await stranger.close()

    run(main(), fast)


def test_closing_in_the_middle_of_a_greeting_ends_at_once_and_leaks_nothing(fast: bool, tmp_path: Path) -> None:
    """Both sides, after any number of turns of the loop. uvloop does not report the end of a cancelled connection."""

    async def greet(turns: int, closes_first: int) -> None:
        sides = one, two = Peer(1), Peer(2)
        two.transport.dial(one.listen(tmp_path))
        for _ in range(turns):
            await asyncio.sleep(0)
        async with asyncio.timeout(SOON / 2):
            await close_all(sides[closes_first], sides[1 - closes_first])

    async def main() -> None:
        await greet(12, 0)  # the loop opens files of its own when it first needs them
        before = len(os.listdir("/proc/self/fd"))
        for turns in range(12):
            for closes_first in (0, 1):
                await greet(turns, closes_first)
        gc.collect()
        await until(lambda: len(os.listdir("/proc/self/fd")) <= before)

    run(main(), fast)


def test_it_dials_until_a_peer_answers_and_again_after_a_break(
    fast: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        two = Peer(2)
        tmp_path.chmod(0o700)
        dial = two.transport.dial(UnixAddress(str(tmp_path / "1.sock")), 1)
        await until(lambda: "no such file" in dial.why)
        one = Peer(1)
        one.listen(tmp_path)
        await two.until("up", 1)
        assert dial.why == ""
        await one.transport.close()
        await two.until("down", 1)
        await until(lambda: "no such file" in dial.why)
        leave_dead_socket(tmp_path / "1.sock")
        await until(lambda: "refused" in dial.why)
        one = Peer(1)
        one.listen(tmp_path)
        await two.until("up", 1, times=2)
        two.transport.hang_up(1)
        assert not two.transport.send(1, ("too late",))
        assert (await two.until("down", 1, times=2))[2] == "hung up"
        assert two.transport.dials == []
        await one.until("down", 2)
        await close_all(one, two)

    run(main(), fast)
    said = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert len(said) == 3, said  # each reason is logged once, however many attempts there were


def test_another_peer_at_the_address_is_refused(tmp_path: Path) -> None:
    async def main() -> None:
        one, two = Peer(1), Peer(2)
        dial = two.transport.dial(one.listen(tmp_path), 3)
        await until(lambda: dial.why == "it refused: expected peer 3, found peer 1, perhaps after a restart")
        await close_all(one, two)
        assert one.told == two.told == []

    run(main())


def test_a_peer_that_dials_itself_stops(tmp_path: Path) -> None:
    async def main() -> None:
        one = Peer(1)
        one.transport.dial(one.listen(tmp_path))
        await until(lambda: not one.transport.dials)
        await one.transport.close()
        assert one.told == []

    run(main())


class CountingWire(Wire):
    writes = 0

    def give(self, data: bytes | bytearray) -> int:
        self.writes += 1
        return super().give(data)


def test_what_is_sent_in_one_turn_leaves_in_one_write(fast: bool, tmp_path: Path) -> None:
    async def main() -> None:
        one, two = Peer(1), Peer(2)
        two.transport.dial(one.listen(tmp_path))
        await two.until("up", 1)
        connection = two.transport.up[1]
        old = connection.raw
        assert old is not None
        raw = connection.raw = CountingWire(os.dup(old.fileno()))
        for number in range(100):
            two.transport.send(1, (number,))
        await one.until("frame", times=100)
        assert raw.writes == 1
        connection.raw = old  # closed with the connection, under the number that its reader knows
        raw.close()
        await close_all(one, two)

    run(main(), fast)


def test_another_thread_keeps_the_order(fast: bool, tmp_path: Path) -> None:
    """Frames go directly to the socket if nothing is queued, otherwise through the loop; also during the greeting."""

    async def main() -> None:
        one, two = Peer(1), Peer(2)
        two.transport.dial(one.listen(tmp_path))
        loop = asyncio.get_running_loop()

        def other_thread() -> None:
            while not send_now((0,)):
                pass
            for number in range(1, 3000):
                if not send_now((number, text(number))):
                    sent = asyncio.run_coroutine_threadsafe(send(number), loop)
                    sent.result(SOON)

        def send_now(frame: Frame) -> bool:
            connection = two.transport.up.get(1)
            return connection is not None and connection.write_now(encode(frame))

        async def send(number: int) -> None:
            assert two.transport.send(1, (number, text(number)))

        def text(number: int) -> str:
            return "x" * (1000 if number % 100 else 500_000)  # the latter never fits into the socket

        await asyncio.gather(asyncio.to_thread(other_thread), one.until("frame", times=3000))
        assert [frame[0] for frame in one.frames()] == list(range(3000))
        await close_all(one, two)

    run(main(), fast)


def test_the_start_and_end_of_pressure_are_reported(fast: bool, tmp_path: Path) -> None:
    async def main() -> None:
        one = Peer(1)
        stranger = await Stranger.at(one.listen(tmp_path))
        await stranger.greet(7)
        await one.until("up", 7)
        sent = 0
        while ("pressure", 7, True) not in one.told:
            assert one.transport.send(7, ("x" * 10_000,))
            sent += 1
            await asyncio.sleep(0)
        assert HIGH < sent * 10_000 < MOST
        got = 0
        while got < sent:
            got += len(stranger.decoder.feed(await stranger.reader.read(1 << 16)))
        await one.until("pressure", 7, False)
        await stranger.close()
        await one.until("down", 7)
        await one.transport.close()

    run(main(), fast)


def test_a_peer_that_does_not_read_is_dropped(fast: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        one = Peer(1)
        stranger = await Stranger.at(one.listen(tmp_path))
        await stranger.greet(7)
        await one.until("up", 7)
        while one.transport.send(7, ("x" * 500_000,)):
            await asyncio.sleep(0)
        assert (await one.until("down", 7))[2].startswith("it does not read")
        await stranger.close()
        await one.transport.close()

    run(main(), fast)
    assert len([record for record in caplog.records if record.levelname == "WARNING"]) == 1


def test_a_codec_error_in_the_handler_closes_the_connection(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def refuse(peer: int, frame: Frame) -> None:
        raise CodecError(f"unknown tag {frame[0]}")

    async def main() -> None:
        one = Peer(1)
        one.answer = refuse
        stranger = await Stranger.at(one.listen(tmp_path))
        await stranger.greet(7)
        await one.until("up", 7)
        one.transport.send(7, ("x",))
        stranger.say(b"\0\0\0\x05\x01\x91\xa2no")
        await one.until("down", 7)
        await stranger.close()
        await one.transport.close()

    run(main())
    said = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert len(said) == 1
    assert "unknown tag no" in said[0]


def test_any_other_error_in_the_handler_closes_one_connection_and_is_logged(
    fast: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    one: Peer

    def stumble(peer: int, frame: Frame) -> None:
        if frame == ("stumble",):
            raise RuntimeError("a bug")
        one.transport.send(peer, frame)

    async def main() -> None:
        nonlocal one
        one, two, three = Peer(1), Peer(2), Peer(3)
        one.answer = stumble
        address = one.listen(tmp_path)
        for peer in (two, three):
            peer.transport.dial(address)
            await peer.until("up", 1)
            await one.until("up", peer.me)
        two.transport.send(1, ("stumble",))
        await one.until("down", 2)
        await two.until("up", 1, times=2)
        for peer in (two, three):
            peer.transport.send(1, ("answer",))
            await peer.until("frame", 1, ("answer",))
        assert [told[0] for told in three.told] == ["up", "frame"]
        await close_all(one, two, three)

    run(main(), fast)
    assert "a bug" in caplog.text


def test_invalid_addresses_are_refused() -> None:
    for text in ("", "host", "host:", ":80", "host:http", "host:70000", "::1:80", "unix:relative", "a b:1", "host:-1"):
        with pytest.raises(BadInput, match="cannot read the address"):
            parse_address(text)
    assert parse_address("[::1]:80") == TcpAddress("::1", 80)
    assert str(parse_address("[::1]:80")) == "[::1]:80"
    assert parse_address("unix:/a/b") == UnixAddress("/a/b")


def test_an_unusable_listening_address_is_reported_in_one_line(tmp_path: Path) -> None:
    async def main() -> None:
        one = Peer(1)
        taken = one.transport.listen(LOOPBACK)
        with pytest.raises(BadInput, match=r"cannot listen on 127.0.0.1:\d+: Address already in use"):
            one.transport.listen(taken)
        tmp_path.chmod(0o700)
        with pytest.raises(BadInput, match="too long for a Unix socket"):
            one.transport.listen(UnixAddress(str(tmp_path / ("x" * 100))))
        with pytest.raises(BadInput, match="cannot use"):
            one.transport.listen(UnixAddress(str(tmp_path / "nowhere" / "x")))
        tmp_path.chmod(0o777)
        with pytest.raises(BadInput, match="accessible to everyone"):
            one.transport.listen(UnixAddress(str(tmp_path / "x")))
        await one.transport.close()

    run(main())


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "example.org", "::"])
def test_listening_and_dialling_off_this_host_require_tls(host: str) -> None:
    async def main() -> None:
        one = Peer(1)
        for do in (one.transport.listen, one.transport.dial):
            with pytest.raises(BadInput, match="fairgate keys init"):
                do(TcpAddress(host, 7400))
        await one.transport.close()
        bold = Peer(1, insecure=True)
        bold.transport.dial(TcpAddress(host, 7400)).stop()
        await bold.transport.close()

    run(main())


ECHO = """
import asyncio, json, sys
from pathlib import Path
from fairgate.net.loop import new_loop
from tests.live.peers import Peer

async def main():
    peer = Peer(9)
    peer.answer = peer.transport.send
    peer.listen(Path(sys.argv[1]))
    print("ready", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    await peer.transport.close()

with asyncio.Runner(loop_factory=new_loop) as runner:
    runner.run(main())
"""


def test_between_two_processes(fast: bool, tmp_path: Path) -> None:
    async def main() -> None:
        one = Peer(1)
        one.transport.dial(UnixAddress(str(tmp_path / "9.sock")), 9)
        await one.until("up", 9)
        sent: list[Frame] = [("to and fro", number) for number in range(1000)]
        for frame in sent:
            one.transport.send(9, frame)
        await one.until("frame", 9, times=len(sent))
        assert one.frames() == sent
        other.kill()  # without a clean close
        await one.until("down", 9)
        await one.transport.close()

    other = subprocess.Popen(
        [sys.executable, "-c", ECHO, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert other.stdout is not None
        assert other.stdout.readline() == "ready\n"
        run(main(), fast)
    finally:
        other.kill()
        other.communicate(timeout=SOON)
    assert other.returncode == -9
