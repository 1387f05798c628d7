"""The lease of a peer, with several peers in one process: lapses, withheld grants, exclusions; and saved state."""

from __future__ import annotations

import asyncio
import errno
import logging
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import fairgate
from fairgate import sync
from fairgate.errors import BadInput, PermitLost
from fairgate.live.in_cluster import ClusterMembership
from fairgate.live.peer_lease import PeerLease
from fairgate.live.saved import SavedCluster, StateFolder, abandoned, read_saved
from fairgate.live.uplink import Uplink
from fairgate.net.address import Address, UnixAddress, parse_address
from fairgate.net.dial import Dial
from fairgate.net.system import clock
from tests.live.commands import until
from tests.live.gates import SOON, busy, live

LEASE = 0.8


@pytest.fixture
def creator(tmp_path: Path) -> Iterator[sync.Peer]:
    """The only voter. While its loop is busy, nobody has a majority."""
    tmp_path.chmod(0o700)
    with sync.join(listen=f"unix:{tmp_path}/0", lease=LEASE) as peer:
        yield peer


def test_a_newcomer_asks_another_member_if_the_first_does_not_let_it_in(
    creator: sync.Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with joined(creator) as second:
        monkeypatch.setattr(second.engine.membership, "on_join", lambda peer, frame: None)
        with sync.join(second.engine.identity.address) as third:
            until(lambda: creator.engine.members.peer(third.engine.me) is not None)


def test_a_newcomer_asks_another_member_if_the_first_leaves(creator: sync.Peer) -> None:
    with joined(creator) as second:
        membership = second.engine.membership
        assert isinstance(membership, ClusterMembership)
        second.engine.loop.call_soon_threadsafe(membership.step, membership.driver.views.on_leave)
        until(lambda: creator.engine.members.peer(second.engine.me) is None)
        with sync.join(second.engine.identity.address) as third:
            assert creator.engine.members.peer(third.engine.me) is not None


def joined(creator: sync.Peer, **more: Any) -> sync.Peer:
    return sync.join(creator.engine.identity.address, **more)


def until_tickets(gate: sync.Semaphore, count: int) -> None:
    until(lambda: len(live(gate).tickets) == count)


# Lapses.


def test_a_lapsed_lease_loses_permits_and_comes_back(creator: sync.Peer, caplog: pytest.LogCaptureFixture) -> None:
    with joined(creator) as peer:
        gate = peer.lock("report")
        permit = gate.hold(SOON)
        me = peer.engine.me
        with busy(creator):
            until(lambda: gate.statistics().permits_lost == 1)
            with pytest.raises(PermitLost, match="cannot reach a majority of the voters"):
                permit.check()
            assert gate.acquire(timeout=0.05) is None
            until(lambda: gate.statistics().guarantee == "no majority")
        gate.hold(SOON).release()
        assert gate.statistics().guarantee == "lease"
        assert "a majority of the voters of the cluster answers again" in caplog.text
        assert peer.engine.me == me  # it was not excluded: only the voter itself was away


def test_a_lapsed_lease_cancels_the_body(creator: sync.Peer) -> None:
    async def main() -> None:
        async with fairgate.join(creator.engine.identity.address) as peer, peer.lock("report"):
            with busy(creator):
                await asyncio.sleep(SOON)

    with pytest.raises(PermitLost, match="cannot reach a majority"):
        asyncio.run(main())


def test_a_kept_seat_is_not_retaken_without_a_lease(creator: sync.Peer) -> None:
    with joined(creator) as peer:
        gate = peer.lock("report")
        gate.hold(SOON).release()
        assert live(gate).kept is not None
        with busy(creator), busy(peer):  # so that no timer of the peer gives the seat up first
            until(lambda: not peer.engine.lease.is_valid())
            assert gate.acquire(timeout=0.05) is None


def test_others_wait_until_a_user_that_lost_its_lease_has_had_time_to_stop(creator: sync.Peer) -> None:
    """The peers reach each other, but not the voter. The slot passes on when the lease ends, not when it is lost."""
    with joined(creator) as one, joined(creator) as two, ThreadPoolExecutor() as pool:
        here, there = one.lock("report"), two.lock("report")
        there.hold(SOON).release()  # it has a seat before the voter is busy
        permit = here.hold(SOON)
        waiting = pool.submit(there.hold, SOON)
        until_tickets(there, 1)
        with busy(creator):
            until(lambda: not permit.valid)
            end = one.engine.lease.end
            assert clock() < end
            until(lambda: live(there).withheld or waiting.done())  # the other peer's lease may end a little later
            assert clock() >= end
        waiting.result(SOON).release()


def test_a_peer_that_leaves_waits_for_users_that_lost_its_lease(creator: sync.Peer) -> None:
    """As above: leaving does not make the time shorter that the user has to stop."""
    with joined(creator) as one, joined(creator) as two, ThreadPoolExecutor() as pool:
        here, there = one.lock("report"), two.lock("report")
        there.hold(SOON).release()
        permit = here.hold(SOON)
        waiting = pool.submit(there.hold, SOON)
        until_tickets(there, 1)
        with busy(creator):
            until(lambda: not permit.valid)
            end = one.engine.lease.end
            leaving = pool.submit(one.close)
            assert clock() < end
            until(lambda: live(there).withheld or waiting.done())  # the other peer's lease may end a little later
            assert clock() >= end
        leaving.result(SOON)
        waiting.result(SOON).release()


def test_a_grant_without_a_lease_is_withheld(creator: sync.Peer) -> None:
    """Both peers have lost their leases. The token still goes from one to the other, but nobody is let in."""
    with joined(creator) as one, joined(creator) as two, ThreadPoolExecutor() as pool:
        here, there = one.lock("report"), two.lock("report")
        here.hold(SOON).release()
        there.hold(SOON).release()
        permit = here.hold(SOON)
        with busy(creator):
            waiting = pool.submit(there.hold, SOON)
            until(lambda: len(live(there).tickets) == 1)
            until(lambda: not (permit.valid or two.engine.lease.is_valid()))
            permit.release()
            until(lambda: live(there).withheld)
            assert not waiting.done()
            assert [one.slot for one in there.requests()] == [None]
        with waiting.result(SOON) as second:
            assert second.valid


def test_no_lease_is_raised_before_its_lapse_was_dealt_with() -> None:
    """As when a stopped process continues, and an answer to its last beat comes before the timer."""

    class Gate:
        lost = ""

        def lose_all(self, why: str) -> None:
            self.lost = why

        def let_in_withheld(self) -> None:
            assert self.lost

    class Owner:
        traffic = Uplink()
        gates: dict[str, Any] = {"report": Gate()}
        loop = asyncio.new_event_loop()

    owner: Any = Owner()
    lease = PeerLease(owner)
    owner.traffic.now = clock()
    owner.traffic.lease_until = owner.traffic.now - 1
    told: list[int] = []
    lease.listeners.append(lambda: told.append(owner.traffic.lease_until))
    lease.raised(owner.traffic.now + 10**9, owner.traffic.now + 2 * 10**9)
    assert owner.gates["report"].lost
    assert told == [owner.traffic.now + 10**9]
    assert lease.is_valid()
    owner.loop.close()


# Exclusions.


def test_an_excluded_peer_joins_again_under_another_id(creator: sync.Peer, caplog: pytest.LogCaptureFixture) -> None:
    """Its permits are lost. Its waiting requests ask again, in the order of their first asking."""
    with joined(creator) as peer, joined(creator) as other:
        me, first, second = peer.engine.me, peer.lock("first"), peer.semaphore("second", 1)
        lost = first.hold(SOON)
        permit = other.lock("second").hold(SOON)
        order: list[int] = []

        def wait(number: int) -> None:
            with second.hold(SOON):
                order.append(number)

        waiters = []
        for number in range(3):
            waiters.append(threading.Thread(target=wait, args=(number,)))
            waiters[-1].start()
            until_tickets(second, number + 1)
        with busy(peer):
            until(lambda: creator.engine.members.peer(me) is None)
        until(lambda: peer.engine.me != me and creator.engine.members.peer(peer.engine.me) is not None)
        assert "the cluster has excluded this peer" in caplog.text
        assert not lost.valid
        assert order == []
        permit.release()
        for waiter in waiters:
            waiter.join(SOON)
        assert order == [0, 1, 2]
        first.hold(SOON).release()


def test_a_peer_joins_again_only_if_it_can_reach_all_members(
    creator: sync.Peer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise it would be excluded again and again, and the gates would wait for its lease each time."""
    with joined(creator) as peer:
        other = joined(creator)
        looks: list[int] = []
        me, transport = peer.engine.me, peer.engine.transport
        membership, real = peer.engine.membership, transport.dial
        unreachable, nowhere = parse_address(other.engine.identity.address), UnixAddress(f"{tmp_path}/nowhere")
        assert isinstance(membership, ClusterMembership)
        look = membership.look_at

        def look_at(member: int) -> None:
            looks.append(member)
            look(member)

        monkeypatch.setattr(membership, "look_at", look_at)
        with busy(peer):
            until(lambda: creator.engine.members.peer(me) is None)

            def dial(address: Address, *words: Any, **more: Any) -> Dial:
                return real(nowhere if address == unreachable else address, *words, **more)

            monkeypatch.setattr(transport, "dial", dial)
        until(lambda: len(looks) >= 3)
        assert peer.engine.me != me
        assert creator.engine.members.peer(peer.engine.me) is None
        other.close()
        until(lambda: creator.engine.members.peer(peer.engine.me) is not None)


@pytest.mark.parametrize("standing", [True, False])
def test_peers_that_leave_at_once(creator: sync.Peer, standing: bool, caplog: pytest.LogCaptureFixture) -> None:
    """The last one has nobody left to tell. If only the creator votes, it waits for the others."""
    peers = [creator, *[joined(creator, standing=standing) for _ in range(4)]]
    with ThreadPoolExecutor() as pool:
        list(pool.map(sync.Peer.close, peers))
    assert "could not leave cleanly" not in caplog.text
    assert "the last standing peer has left" not in caplog.text
    assert "nobody is let in" not in caplog.text


def test_what_an_excluded_peer_held_is_free_after_its_lease(creator: sync.Peer) -> None:
    with joined(creator) as peer, joined(creator) as other:
        permit = peer.lock("report").hold(SOON)
        with busy(peer):
            began = time.monotonic()
            with other.lock("report").hold(SOON):
                assert not permit.valid
                assert 0.5 * LEASE < time.monotonic() - began < LEASE + 1


def test_seats_are_asked_for_by_doubling(creator: sync.Peer) -> None:
    """200 requests of one peer cost the gate at most 8 views."""
    with joined(creator) as peer, ThreadPoolExecutor(200) as pool:
        gate = peer.lock("report")
        first = gate.hold(SOON)
        waiting = []
        for count in range(1, 200):
            waiting.append(pool.submit(lambda: gate.hold(2 * SOON).release()))
            until_tickets(gate, count + 1)
        first.release()
        for one in waiting:
            one.result(2 * SOON)
        assert live(gate).record.seats(peer.engine.me) == 256
        assert gate.statistics().views <= 9


# Input.


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ({"lease": 0.1}, r"the lease of a cluster must be 0\.5 to 3600 seconds, not 0\.1"),
        ({"lease": "long"}, r"must be 0\.5 to 3600 seconds, not 'long'"),
        ({"drift": 0.7}, r"the drift of clocks must be a fraction from 0 to 0\.5, not 0\.7"),
    ],
)
def test_bad_times_are_refused(tmp_path: Path, words: dict[str, Any], expected: str) -> None:
    with pytest.raises(BadInput, match=expected):
        sync.join(listen=f"unix:{tmp_path}/0", **words)


def test_only_the_creator_chooses_the_times(creator: sync.Peer) -> None:
    with pytest.raises(BadInput, match="are chosen when it is created"):
        joined(creator, lease=5)
    with joined(creator) as peer:
        assert peer.engine.members.lease == int(LEASE * 1e9)


def test_a_lease_that_is_too_short_for_the_network_is_reported(
    creator: sync.Peer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with joined(creator):
        assert "a round trip to" not in caplog.text
    monkeypatch.setattr("fairgate.live.entrance.ROUND_TRIPS", 1_000_000)  # as if it had taken that much longer
    with joined(creator):
        assert "s: the lease of this cluster, 0.8 s, is too short for that" in caplog.text


@pytest.mark.parametrize("years", [-30, 10, 100])
def test_a_clock_that_jumps_is_reported_and_costs_nothing(
    creator: sync.Peer, years: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with joined(creator) as peer, peer.lock("report").hold(SOON) as held:
        wrong = time.time() + years * 365 * 86_400
        monkeypatch.setattr("fairgate.live.views_driver.time", SimpleNamespace(time=lambda: wrong))
        until(lambda: caplog.text.count("the system clock jumped by") == 2)  # each peer says so once
        with joined(creator) as other:
            gate = other.lock("report")
            assert gate.acquire(timeout=0.05) is None
            held.check()
            held.release()
            with gate.hold(SOON) as permit:
                assert (permit.fence or 0) > (held.fence or 0)
        monkeypatch.undo()
        until(lambda: caplog.text.count("the system clock jumped by") == 4)
        with peer.lock("report").hold(SOON) as last:
            assert (last.fence or 0) > (permit.fence or 0)


# Saved state.

SAVED = SavedCluster("c0ffee", 10_000_000_000, 10_000, 7, "127.0.0.1:1", ("127.0.0.1:2",))


def test_a_full_disk_is_told_as_such(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("fairgate.live.saved.os.pwrite", full)
    with pytest.raises(BadInput, match=r"cannot use the state directory .*: No space left on device"):
        StateFolder(str(tmp_path / "state"))


def test_saved_state(tmp_path: Path) -> None:
    folder = StateFolder(str(tmp_path / "a" / "b"))
    assert folder.load() is None
    folder.save(SAVED)
    assert read_saved(tmp_path / "a" / "b") == SAVED
    with pytest.raises(BadInput, match=r"a standing peer of this host is in this cluster already \(pid \d+, "):
        StateFolder(str(tmp_path / "a" / "b"))
    folder.close()
    again = StateFolder(str(tmp_path / "a" / "b"))
    assert again.load() == SAVED
    again.close()
    (tmp_path / "a" / "b" / "cluster.json").write_text("{")
    with pytest.raises(BadInput, match="cannot read"):
        read_saved(tmp_path / "a" / "b")
    with pytest.raises(BadInput, match="cannot use the state directory"):
        StateFolder("/proc/none")


def test_how_long_old_leases_are_waited_for() -> None:
    assert SAVED.wait() == 10_100_000_000
    assert abandoned(SAVED).wait() == 0
    assert abandoned(SAVED).alone


def test_a_cluster_goes_on_above_the_saved_epoch(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    tmp_path.chmod(0o700)
    how: dict[str, Any] = {"listen": f"unix:{tmp_path}/0", "state": str(tmp_path / "state"), "lease": 0.5}
    with sync.join(**how) as peer:
        cluster = peer.engine.members.cluster
        with peer.lock("report").hold(SOON) as permit:
            fence = permit.fence or 0
    folder = StateFolder(str(tmp_path / "state"))
    saved = folder.load()
    assert saved is not None
    assert (saved.cluster, saved.alone, saved.left) == (cluster, True, True)
    ahead = saved.epoch + 1_000_000  # as if views had been made faster than one a second for long
    folder.save(SavedCluster(cluster, saved.lease, saved.drift, ahead, saved.address, (), alone=True))
    folder.close()
    began = time.monotonic()
    with sync.join(**how) as peer, peer.lock("report").hold(SOON) as permit:
        assert peer.engine.members.cluster == cluster
        assert (permit.fence or 0) >> 32 > ahead > fence >> 32
    assert time.monotonic() - began > 0.5  # it had not left, so its leases had to end first
