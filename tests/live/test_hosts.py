"""Clusters, with several peers in one process on loopback: joining, the roster, broken connections."""

from __future__ import annotations

import asyncio
import random
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import fairgate
from fairgate import KMismatch, sync
from fairgate.core.ids import NIL
from fairgate.errors import BadInput
from fairgate.live.entrance import LOOK, Entrance
from fairgate.live.report import Person, on_our_clock
from fairgate.live.ticket import NO_DEADLINE
from fairgate.net import keys, secret
from fairgate.net.address import TcpAddress
from fairgate.net.dial import Dial
from fairgate.net.secret import Secret
from fairgate.net.system import clock
from fairgate.recovery.roster import Members
from tests.live import peers

HERE = "127.0.0.1"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HERE, 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.fixture
def keeper() -> Iterator[sync.Peer]:
    with sync.join(listen=f"{HERE}:0") as peer:
        yield peer


def address(peer: sync.Peer) -> str:
    return peer.engine.identity.address


def test_three_hosts_share_a_gate(keeper: sync.Peer) -> None:
    with (
        sync.join(address(keeper)) as one,
        sync.join(address(one)) as two,
    ):  # the second joins through a peer that is not the keeper
        gates = [peer.semaphore("gpu", k=2) for peer in (keeper, one, two)]
        fences: dict[int | None, list[int]] = {}
        for _ in range(10):
            for gate in gates:
                with gate as permit:
                    assert permit.fence is not None
                    fences.setdefault(permit.slot, []).append(permit.fence)
        assert sum(map(len, fences.values())) == 30
        assert all(given == sorted(set(given)) for given in fences.values())
        with gates[0], gates[1]:
            assert gates[2].acquire(timeout=0.05) is None
            assert [holder.slot for holder in gates[2].holders()] == [0, 1]
        assert gates[0].statistics().guarantee == "lease"


def test_a_leaving_peer_leaves_its_token_behind(keeper: sync.Peer) -> None:
    gate = keeper.lock("report")
    for _ in range(3):
        with sync.join(address(keeper)) as other, other.lock("report"):
            pass  # now the token is there
        with gate:
            pass


def test_another_k_is_refused(keeper: sync.Peer) -> None:
    with (
        sync.join(address(keeper)) as other,
        keeper.semaphore("gpu", k=3),
        pytest.raises(KMismatch, match="is open with k=3, not k=2"),
    ):
        other.semaphore("gpu", k=2).acquire()


def test_a_standing_peer_takes_over_from_the_creator(keeper: sync.Peer) -> None:
    with sync.join(address(keeper), standing=True) as other, other.lock("old") as permit:
        keeper.close()
        assert permit.valid
        with sync.join(address(other)) as third, third.lock("new"):
            assert not third.lock("old").acquire(timeout=0.05)
            permit.release()
            with third.lock("old"):
                pass


def test_the_last_standing_peer_warns_as_it_leaves(keeper: sync.Peer, caplog: pytest.LogCaptureFixture) -> None:
    with sync.join(address(keeper)) as peer:
        keeper.close()
        assert "the last standing peer has left" in caplog.text
        peer.close()
        assert "could not leave cleanly" not in caplog.text  # there is no cluster that would wait for its lease


def test_joining_an_unreachable_seed_times_out() -> None:
    nobody = f"{HERE}:{free_port()}"
    with pytest.raises(BadInput, match=f"could not join within 0.5 s: {nobody}: connection refused"):
        sync.join(nobody, join_timeout=0.5)


@pytest.mark.parametrize("how", [{"cluster": "theirs"}, {"secret": Secret(b"another secret of tests")}])
def test_a_refusal_that_will_not_go_away_ends_the_attempt_to_join(
    keeper: sync.Peer, how: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    began = time.monotonic()
    with pytest.raises(BadInput, match=f"cannot join: {address(keeper)}: it does not know this") as wrong:
        sync.join(address(keeper), join_timeout=60, **how)
    assert time.monotonic() - began < 20
    assert "\n" not in str(wrong.value)
    assert [record for record in caplog.records if "trying again" in record.message and record.levelno > 10] == []


def test_an_address_that_refuses_is_reported_if_another_one_does_not(
    keeper: sync.Peer, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    let_in = Entrance.let_in

    async def let_in_late(self: Entrance, contact: int, members: Members, dials: list[Dial]) -> None:
        while not any(dial.is_refused for dial in dials):
            await asyncio.sleep(0.01)
        await let_in(self, contact, members, dials)

    monkeypatch.setattr(Entrance, "let_in", let_in_late)
    with sync.join(listen=f"{HERE}:0", cluster="theirs") as other, sync.join(address(other), address(keeper)) as peer:
        assert peer.engine.members.peer(keeper.engine.me) is not None
        assert f"{address(other)}: it does not know this cluster's secret" in caplog.text


@pytest.mark.parametrize(
    ("seeds", "network", "words"),
    [
        ((), {"cluster": "x"}, "needs an address to listen on"),
        (("nowhere",), {}, "cannot read the address nowhere"),
        ((b"nowhere",), {}, "cannot read the address b'nowhere': write a string, such as '10.0.0.5:7400'"),
        (("unix:x",), {}, "cannot read the address unix:x: write unix: followed by an absolute path"),
        (("unix:/x", f"{HERE}:1"), {}, f"either Unix sockets or TCP: unix:/x and {HERE}:1 cannot be combined"),
        ((), {"listen": "unix:/x", "advertise": f"{HERE}:1"}, f"TCP: unix:/x and {HERE}:1 cannot be combined"),
        ((), {"listen": "0.0.0.0:0", "insecure": True}, "address to advertise"),
        ((), {"listen": "0.0.0.0:0", "advertise": "10.0.0.5:7400"}, "create keys"),
    ],
)
def test_bad_input_is_reported_in_one_line(seeds: tuple[str, ...], network: dict[str, Any], words: str) -> None:
    with pytest.raises(BadInput, match=words) as wrong:
        sync.join(*seeds, **network)
    assert "\n" not in str(wrong.value)


def test_a_port_in_use_is_reported(keeper: sync.Peer) -> None:
    with pytest.raises(BadInput, match="cannot listen on"):
        sync.join(listen=address(keeper))


def test_another_cluster_is_refused(keeper: sync.Peer) -> None:
    with pytest.raises(BadInput, match="its cluster has another name"):
        sync.join(address(keeper), cluster="other", join_timeout=0.3)


def test_with_tls(tmp_path: Path) -> None:
    keys.init(tmp_path)
    keys.add(tmp_path, "here", [HERE])
    tls = keys.load(tmp_path, "here")
    with sync.join(listen=f"{HERE}:0", tls=tls) as keeper, sync.join(address(keeper), tls=tls) as other:
        gates = [keeper.lock("report"), other.lock("report")]
        for _ in range(5):
            for gate in gates:
                with gate:
                    pass
        with pytest.raises(BadInput, match="could not join"):
            sync.join(address(keeper), join_timeout=0.3)


class Cutter:
    """A proxy in front of a peer's port that cuts connections every few frames."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.port = free_port()
        self.target = 0
        self.cuts = 0
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        serving = asyncio.start_server(self.serve, HERE, self.port)
        asyncio.run_coroutine_threadsafe(serving, self.loop).result(30)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there, to = await asyncio.open_connection(HERE, self.target)
        except OSError:
            writer.transport.abort()
            return
        ways = [asyncio.ensure_future(self.pass_on(reader, to)), asyncio.ensure_future(self.pass_on(there, writer))]
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        for uplink in ways:
            uplink.cancel()
        self.cuts += 1
        to.transport.abort()
        writer.transport.abort()

    async def pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Data that was read but not passed on is lost, as when a connection breaks."""
        for _ in range(self.random.randint(5, 40)):
            data = await reader.read(65536)
            if not data:
                break
            writer.write(data)
        await reader.read(65536)


@pytest.mark.parametrize("seed", range(2))
def test_broken_connections_lose_nothing(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secret, "loopback_addresses", lambda addresses: [])  # otherwise peers notice the cutter
    cutter = Cutter(seed)
    cutter.target = free_port()
    door, nowhere = f"{HERE}:{cutter.port}", f"{HERE}:{free_port()}"
    with (
        sync.join(listen=f"{HERE}:{cutter.target}", advertise=door) as keeper,
        sync.join(door, advertise=nowhere) as other,  # so that nobody can bypass the cutter
    ):
        gates = [keeper.lock("report"), other.lock("report")]
        rounds = 0
        while rounds < 30 or cutter.cuts < 3:  # how many rounds a connection lasts depends on the moment
            rounds += 1
            assert rounds < 3000
            for gate in gates:
                with gate.hold(timeout=30) as permit:
                    assert permit.valid


def test_times_of_another_host_are_converted_to_our_clock() -> None:
    hour = 3_600_000_000_000
    now = clock()
    waits = Person(1, 1, 1, "other", False, now - 5 + hour, NIL, NIL, NO_DEADLINE, "")
    here = on_our_clock(waits, now + hour)
    assert 0 <= here.since - (now - 5) < hour
    assert here.deadline == NO_DEADLINE
    inside = msgspec.structs.replace(waits, inside=True, deadline=now + 7 + hour)
    assert 0 <= on_our_clock(inside, now + hour).deadline - (now + 7) < hour
    assert on_our_clock(waits, clock()) == waits  # times of our own host are not changed at all


def test_cancelling_the_task_stops_the_join() -> None:
    async def main() -> None:
        seed = peers.Peer(1, "fairgate")
        where = seed.transport.listen(TcpAddress(HERE, 0))
        joining = asyncio.ensure_future(fairgate.join(str(where), join_timeout=600).start())
        _, joiner, asked = await seed.until("frame")
        assert asked == (LOOK,)
        joining.cancel()
        with pytest.raises(asyncio.CancelledError):
            await joining
        await seed.until("down", joiner)
        await peers.close_all(seed)

    peers.run(main())
