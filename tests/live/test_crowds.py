"""Many connections that say nothing, or never finish, neither lock a port out nor use up the process."""

from __future__ import annotations

import asyncio
import logging
import resource
from pathlib import Path
from struct import Struct

import pytest

from fairgate.net import listening
from fairgate.net.address import TcpAddress, UnixAddress
from fairgate.net.codec import VERSION, encode
from fairgate.net.connection import HELLO_LIMIT
from fairgate.net.rationed_log import LINES, SECONDS, RationedLog
from tests.live.peers import Peer, Stranger, close_all, hello, lines, run, until

HEAD = Struct(">IB")
LOOPBACK = TcpAddress("127.0.0.1", 0)


@pytest.fixture(params=["asyncio", "uvloop"])
def fast(request: pytest.FixtureRequest) -> bool:
    if request.param == "uvloop":
        pytest.importorskip("uvloop")
    return bool(request.param == "uvloop")


@pytest.mark.parametrize("kind", ["unix", "tcp"])
def test_silent_connections_do_not_lock_a_port_out(
    kind: str, fast: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    most = 10
    monkeypatch.setattr(listening, "MOST_PER_ADDRESS", most)

    async def main() -> None:
        one = Peer(1, greeting_seconds=20)
        address = one.listen(tmp_path) if kind == "unix" else one.transport.listen(LOOPBACK)
        strangers = one.transport.listening.strangers
        silent = [await Stranger.at(address) for _ in range(3 * most)]
        assert await silent[0].answers() == []  # the oldest was closed
        await until(lambda: len(strangers) == most)
        two = Peer(2)
        two.transport.dial(address)
        await one.until("up", 2)
        await until(lambda: len(strangers) < most)
        for stranger in silent:
            await stranger.close()
        await until(lambda: not strangers)
        await close_all(one, two)

    run(main(), fast)
    said = [line for line in lines(caplog.records) if f"{most} others from" in line]
    assert len(said) == LINES


def test_one_address_does_not_lock_others_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A flood from one address evicts its own connections, not those of others."""
    monkeypatch.setattr(listening, "MOST_PER_ADDRESS", 5)

    async def main() -> None:
        one = Peer(1, greeting_seconds=20)
        address, unix = one.transport.listen(LOOPBACK), one.listen(tmp_path)
        elsewhere = await Stranger.at(unix)
        await until(lambda: len(one.transport.listening.strangers) == 1)
        flood = [await Stranger.at(address) for _ in range(20)]
        await until(lambda: len(one.transport.listening.strangers) == 6)
        await elsewhere.greet(7)
        await one.until("up", 7)
        for stranger in (*flood, elsewhere):
            await stranger.close()
        await one.transport.close()

    run(main())


def test_the_limit_for_all_addresses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening, "MOST_STRANGERS", 5)

    async def main() -> None:
        one = Peer(1, greeting_seconds=20)
        address = one.listen(tmp_path)
        flood = [await Stranger.at(address) for _ in range(12)]
        for stranger in flood[:7]:
            assert await stranger.answers() == []
        assert len(one.transport.listening.strangers) == 5
        for stranger in flood:
            await stranger.close()
        await one.transport.close()

    run(main())


def test_some_descriptors_stay_free(tmp_path: Path, fast: bool, caplog: pytest.LogCaptureFixture) -> None:
    """Connections that are up are never closed for newcomers; those are refused when descriptors run short."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)

    async def main() -> None:
        one = Peer(1, greeting_seconds=20)
        address = one.listen(tmp_path)
        friend = await Stranger.at(address)
        await friend.greet(7)
        await one.until("up", 7)
        with open("/dev/null") as probe:
            resource.setrlimit(resource.RLIMIT_NOFILE, (2 * probe.fileno(), hard))
        refused = await Stranger.at(address)
        assert await refused.answers() == []
        friend.say(encode(("still here",)))
        await one.until("frame", 7)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for stranger in (refused, friend):
            await stranger.close()
        await one.transport.close()

    try:
        run(main(), fast)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert lines(caplog.records)[0].startswith("refused a connection from user")
    assert "nearly as many open files as it may have" in lines(caplog.records)[0]


def test_no_limit_of_descriptors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda which: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert listening.highest_descriptor() > 1_000_000


@pytest.mark.parametrize("reads", ["loop", "reader"])
def test_a_begun_frame_has_a_deadline(reads: str, fast: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        one = Peer(1, frame_seconds=0.5, elsewhere=(lambda peer, frame: False) if reads == "reader" else None)
        address = one.listen(tmp_path)
        slow, good = await Stranger.at(address), await Stranger.at(address)
        await slow.greet(7)
        await good.greet(8)
        await one.until("up", 7)
        await one.until("up", 8)
        slow.say(encode(("whole",)) + HEAD.pack(1000, VERSION) + b"\x91")
        for _ in range(8):  # each is complete in time, though one of them is always under way
            frame = encode(("x" * 100,))
            good.say(frame[50:] if _ else b"")
            good.say(frame[:50])
            await asyncio.sleep(0.1)
        assert "only part of a frame" in (await one.until("down", 7))[2]
        assert ("down", 8) not in [told[:2] for told in one.told]
        await slow.close()
        await good.close()
        await one.transport.close()

    run(main(), fast)
    assert len(lines(caplog.records)) == 1


async def dialled(folder: Path, said: bytes) -> str:
    """Why a peer gives up on a process that it dials and that says this."""
    folder.chmod(0o700)
    ended = asyncio.Event()

    async def say(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(said)
        await reader.read()
        writer.close()
        ended.set()

    server = await asyncio.start_unix_server(say, folder / "9.sock")
    (folder / "9.sock").chmod(0o600)
    one = Peer(1)
    dial = one.transport.dial(UnixAddress(str(folder / "9.sock")))
    await until(lambda: bool(dial.why))
    await one.transport.close()
    await ended.wait()
    server.close()
    return dial.why


def test_frames_are_small_before_the_greeting_is_over(tmp_path: Path) -> None:
    """Also those of the side that was dialled: it is a stranger too."""

    async def main() -> None:
        why = await dialled(tmp_path, HEAD.pack(HELLO_LIMIT + 1, VERSION))
        assert f"at most {HELLO_LIMIT}" in why

    run(main())


def test_lines_about_strangers_are_rationed(caplog: pytest.LogCaptureFixture) -> None:
    now = 0.0
    log = RationedLog(logging.getLogger("fairgate.net"), lambda: now)
    for number in range(LINES + 5):
        log.warning("line %d", number)
    assert lines(caplog.records) == [f"line {number}" for number in range(LINES)]
    now = SECONDS
    log.warning("another")
    assert lines(caplog.records)[LINES:] == ["5 similar lines were left out", "another"]


def test_a_refusal_of_another_peer_is_printed_without_control_characters(tmp_path: Path) -> None:
    async def main() -> None:
        assert await dialled(tmp_path, encode(("refused", "\x1b[2Jgone"))) == "it refused: ?[2Jgone"

    run(main())


def test_a_hello_in_pieces_is_still_a_hello(tmp_path: Path) -> None:
    async def main() -> None:
        one = Peer(1)
        stranger = await Stranger.at(one.listen(tmp_path))
        for byte in hello(7):
            stranger.say(bytes([byte]))
            await asyncio.sleep(0)
        while not stranger.decoder.feed(await stranger.reader.read(1000)):
            pass
        stranger.say(encode(("ready",)))
        await one.until("up", 7)
        await stranger.close()
        await one.transport.close()

    run(main())
