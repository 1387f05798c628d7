"""One member's key cannot exhaust a peer: its connections, their unfinished frames and lines about it are bounded."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from pathlib import Path
from struct import Struct

import pytest
from msgspec.structs import replace

from fairgate import sync
from fairgate.live.in_cluster import ClusterMembership
from fairgate.net import crowd, keys
from fairgate.net.address import Address, TcpAddress, parse_address
from fairgate.net.codec import LIMIT, VERSION, Frame, encode
from fairgate.net.rationed_log import LINES
from fairgate.recovery.roster import Members, PeerRecord, as_key, members_of
from tests.live.commands import standing
from tests.live.peers import Peer, Stranger, hello, lines, quietly, run, until

HEAD = Struct(">IB")
HOST = "127.0.0.1"
UNFINISHED = HEAD.pack(LIMIT, VERSION) + bytes(LIMIT - 100)
Connect = Callable[[Address], Awaitable[Stranger]]


def held(peer: Peer) -> int:
    """Bytes of frames that have begun to arrive."""
    return sum([len(connection.decoder.rest) for connection in peer.transport.connections])


async def flood(one: Peer, address: Address, count: int, data: bytes) -> list[Stranger]:
    """Connections with ids of their own, each of which sends this after the greeting."""
    found = []
    for number in range(1000, 1000 + count):
        stranger = await Stranger.at(address)
        await stranger.greet(number)
        await one.until("up", number)
        stranger.say(data)
        await quietly(stranger.writer.drain())
        found.append(stranger)
    return found


def test_connections_of_one_principal_are_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(crowd, "MOST_OUTSIDERS", 20)

    async def main() -> None:
        one = Peer(1)
        one.members = {1000, 1001}
        address = one.listen(tmp_path)
        strangers = await flood(one, address, 200, encode(("here",)))
        await one.until("frame", 1199)
        assert sorted(one.transport.up) == [1000, 1001, *range(1180, 1200)]  # members stay, and of others the latest
        await until(lambda: len(one.transport.connections) == 22)
        for stranger in strangers:
            await stranger.close()
        await one.transport.close()

    run(main())
    assert f"{crowd.MOST_OUTSIDERS} others with the same key or user came after it" in lines(caplog.records)[0]
    assert len(lines(caplog.records)) == LINES


@pytest.mark.parametrize("reads", ["loop", "reader"])
def test_bytes_in_flight_of_one_principal_are_bounded(
    reads: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    most = 4 * (LIMIT + HEAD.size)
    monkeypatch.setattr(crowd, "MOST_LARGE", most)

    async def main() -> None:
        one = Peer(1, elsewhere=(lambda peer, frame: False) if reads == "reader" else None)
        one.members = {7}
        address = one.listen(tmp_path)
        member = await Stranger.at(address)
        await member.greet(7)
        await one.until("up", 7)
        member.say(UNFINISHED)
        await until(lambda: held(one) > LIMIT - 200)
        strangers = await flood(one, address, 20, UNFINISHED)
        await until(lambda: len(one.transport.up) == 4)
        assert sorted(one.transport.up) == [7, 1017, 1018, 1019]
        await until(lambda: held(one) > 3 * LIMIT)
        assert held(one) <= most
        whole = encode((bytes(LIMIT - 100),))  # others are not affected
        other = await Stranger.at(address)
        await other.greet(8)
        await one.until("up", 8)
        one.transport.up[8].principal = "unix:1:1"
        other.say(whole)
        await one.until("frame", 8)
        for stranger in (member, other, *strangers):
            await stranger.close()
        await one.transport.close()

    run(main())
    assert "too many large frames with the same key or user are under way" in caplog.text


def test_frames_before_the_end_of_a_greeting_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crowd, "MOST_LARGE", 2 * (LIMIT + HEAD.size))

    async def main() -> None:
        one = Peer(1)
        address = one.listen(tmp_path)
        strangers = [await Stranger.at(address) for _ in range(8)]
        for number, stranger in enumerate(strangers):
            stranger.say(hello(1000 + number))
            while not stranger.decoder.feed(await stranger.reader.read(1000)):
                pass
            stranger.say(UNFINISHED)
        await until(lambda: len(one.transport.connections) == 2)
        assert held(one) <= 2 * (LIMIT + HEAD.size)
        for stranger in strangers:
            await stranger.close()
        await one.transport.close()

    run(main())


def test_answers_that_one_principal_does_not_read_are_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(crowd, "MOST_FULL", 2)

    async def main() -> None:
        one = Peer(1)

        def answers(peer: int, frame: Frame) -> None:
            for _ in range(4):
                one.transport.send(peer, (bytes(LIMIT - 100),))

        one.members = {1000, 1001}
        one.answer = answers
        address = one.listen(tmp_path)
        strangers = await flood(one, address, 10, encode(("ask",)))
        await until(lambda: len(one.transport.connections) == 4)
        assert sorted(one.transport.up) == [1000, 1001, 1008, 1009]
        other = await Stranger.at(address)  # one that reads is not affected
        await other.greet(8)
        await one.until("up", 8)
        other.say(encode(("ask",)))
        found = 0
        while found < 4:
            found += len(other.decoder.feed(await other.reader.read(LIMIT)))
        for stranger in (other, *strangers):
            await stranger.close()
        await one.transport.close()

    run(main())
    assert "it does not read, nor do 2 others with the same key or user" in caplog.text


def test_lines_about_members_are_rationed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        one = Peer(1)
        address = one.listen(tmp_path)
        for stranger in await flood(one, address, 2 * LINES, encode(("here",))):
            await until(lambda: len(one.frames()) == 2 * LINES)
            stranger.say(b"\xff" * 100)
            assert await stranger.answers() == []
            await stranger.close()
        await one.transport.close()

    run(main())
    assert len(lines(caplog.records)) == LINES
    assert all("frame version 255" in line for line in lines(caplog.records))


def test_lines_about_members_that_come_and_vanish_are_rationed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tmp_path.chmod(0o700)
    gone = tuple([PeerRecord(peer, f"{HOST}:{peer}", "key") for peer in range(1, 2 * LINES)])
    with sync.join(listen=f"unix:{tmp_path}/0") as keeper:
        keeper.engine.membership.tell_of_excluded(Members(excluded=gone))  # type: ignore[attr-defined]
    assert caplog.text.count("was excluded") == LINES


def test_all_members_of_a_cluster_with_a_secret_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are one principal."""
    most = 4
    monkeypatch.setattr(crowd, "MOST_OUTSIDERS_SHARED", most)
    with contextlib.ExitStack() as stack:
        first = stack.enter_context(sync.join(listen=f"{HOST}:0"))
        seed = first.engine.identity.address
        peers = [first, *[stack.enter_context(sync.join(seed)) for _ in range(3 * most)]]
        for peer in peers:
            with peer.lock("report").hold(30):
                pass
        assert len(first.engine.transport.up) == len(peers) - 1
        assert len(first.engine.members.peers) == len(peers)


def memory(pid: int) -> float:
    """Resident MiB."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096 / (1 << 20)


@pytest.mark.stress
def test_fifteen_hundred_connections_with_one_key(tmp_path: Path) -> None:
    """With the real limits, over TLS: each connection has buffers of its own."""
    folder = tmp_path / "keys"
    keys.init(folder)
    for host in ("one", "thief"):
        keys.add(folder, host, [HOST])
    peer, seed = standing("--create", "--listen", f"{HOST}:0", "--keys", str(folder / "one.crt"))
    before = memory(peer.pid)
    client: ssl.SSLContext = keys.load(folder, "thief").client

    async def main() -> None:
        address = parse_address(seed)
        assert isinstance(address, TcpAddress)
        found = []
        for number in range(1500):
            stranger = Stranger(*await asyncio.open_connection(address.host, address.port, ssl=client))
            stranger.say(hello(1000 + number, "fairgate"))
            while not stranger.decoder.feed(await stranger.reader.read(1000)):
                pass
            stranger.say(encode(("ready",)) + UNFINISHED)
            await quietly(stranger.writer.drain())
            found.append(stranger)
        assert memory(peer.pid) - before < 200
        for stranger in found:
            stranger.writer.transport.abort()

    with asyncio.Runner() as runner:
        runner.run(main())
    with sync.join(seed, tls=keys.load(folder, "thief")) as other, other.lock("report").hold(30):
        pass
    logging.getLogger(__name__).info("%.0f MiB before, %.0f after", before, memory(peer.pid))
    peer.kill()
    peer.communicate()


def test_nothing_stays_of_connections_that_have_ended(tmp_path: Path) -> None:
    """A peer remembers which roster it has sent over which connection, but not once that is closed."""
    tmp_path.chmod(0o700)
    with sync.join(listen=f"unix:{tmp_path}/0") as peer:
        membership = peer.engine.membership
        assert isinstance(membership, ClusterMembership)
        driver = membership.driver
        address = parse_address(peer.engine.identity.address)

        async def main() -> None:
            for number in range(1000, 1005):
                stranger = await Stranger.at(address)
                await answer_to(stranger, hello(number, "fairgate"))
                await answer_to(stranger, encode(("ready",)) + encode(("vw.behind", 0)))
                stranger.say(UNFINISHED)
                await stranger.close()
            await until(lambda: not peer.engine.transport.connections)

        run(main())
        assert not driver.told
        assert not driver.heard.keys() - {peer.engine.me}


async def answer_to(stranger: Stranger, said: bytes) -> None:
    stranger.say(said)
    while not stranger.decoder.feed(await stranger.reader.read(1000)):
        pass


def test_a_roster_that_nobody_asked_for_excludes_nobody(tmp_path: Path) -> None:
    """Whoever knows the secret could force a peer out by it, again and again."""
    tmp_path.chmod(0o700)
    with sync.join(listen=f"unix:{tmp_path}/0") as peer, peer.lock("gpu").hold(30) as permit:
        address = parse_address(peer.engine.identity.address)

        async def main() -> None:
            stranger = await Stranger.at(address)
            await answer_to(stranger, hello(1000, "fairgate"))
            stranger.say(encode(("ready",)) + encode(("look",)))
            found: list[Frame] = []
            while not (rosters := [frame for frame in found if frame[0] == "roster"]):
                found += stranger.decoder.feed(await stranger.reader.read(10000))
            kind, version, voters, lingering, content, leader = rosters[0]
            members = members_of(content)
            later = replace(members, epoch=members.epoch + 5, peers=(), gates=())
            for _ in range(2):  # a creator takes the first one for that of a contact
                stranger.say(encode((kind, version, voters, lingering, as_key(later), leader)))
            stranger.say(encode(("ask", 1)))
            while not any(frame[0] == "tell" for frame in stranger.decoder.feed(await stranger.reader.read(10000))):
                pass
            await stranger.close()

        before = peer.engine.me
        run(main())
        assert permit.valid
        assert peer.engine.me == before


def test_answers_are_not_kept_for_a_member(tmp_path: Path) -> None:
    """The reliable channel would keep 65,536 of them for a member that acknowledges none."""
    tmp_path.chmod(0o700)
    with sync.join(listen=f"unix:{tmp_path}/0") as peer, sync.join(f"unix:{tmp_path}/0") as other:
        engine = peer.engine
        sent: Future[int] = Future()

        def ask() -> None:
            engine.take(other.engine.me, ("ask", 1))
            sent.set_result(engine.links.channel.link(other.engine.me).sent)

        engine.loop.call_soon_threadsafe(ask)
        assert sent.result(30) == 0
