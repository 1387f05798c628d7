"""The same times everywhere: `deadline`, `left()` and `who` speak of the user's lease, and `safe_until` of what is
guaranteed at this moment. A permit ends with the earlier of both."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import fairgate
from fairgate import sync
from fairgate.errors import PermitLost
from fairgate.room.layout import PROMISED
from fairgate.room.room import Room
from tests.live.commands import FAIRGATE, SOON, Say, inside, line, standing, until
from tests.live.gates import busy
from tests.live.guests import GuestHost, ended

LEASE = 3.0  # of the cluster, in seconds
LONG = 60.0  # a lease of a user


def now() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[sync.Peer]:
    tmp_path.chmod(0o700)
    with sync.join(listen=f"unix:{tmp_path}/0", lease=LEASE) as peer:
        yield peer


@pytest.fixture
def local() -> Iterator[sync.Peer]:
    with sync.join() as peer:
        yield peer


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[GuestHost]:
    """A standing peer whose guests are this process and the commands that it starts."""
    found = GuestHost(tmp_path)
    monkeypatch.setenv("FAIRGATE_DIR", found.env["FAIRGATE_DIR"])
    with ended([found.peer("--lease", str(LEASE))]):
        yield found


@pytest.fixture(params=["host", "peer", "guest"])
def gate(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[sync.Semaphore]:
    """A gate of this host, of a cluster as one of its peers, and of a cluster as a guest."""
    if request.param == "host":
        monkeypatch.setenv("FAIRGATE_DIR", str(tmp_path / "run"))
        with sync.join() as peer:
            yield peer.lock("gpu")
    elif request.param == "peer":
        yield request.getfixturevalue("cluster").lock("gpu")
    else:
        with sync.join(request.getfixturevalue("host").seed) as peer:
            yield peer.lock("gpu")


def test_without_a_lease_there_is_no_deadline(gate: sync.Semaphore) -> None:
    with gate.hold(SOON) as permit:
        assert permit.left() is None
        assert permit.deadline is None
        assert [one.deadline for one in gate.holders()] == [None]


def test_a_lease_is_the_users(gate: sync.Semaphore) -> None:
    with gate.hold(SOON, lease=LONG) as permit:
        left = permit.left()
        assert left is not None
        assert LONG - SOON < left <= LONG
        deadline = permit.deadline
        assert deadline is not None
        [listed] = gate.holders()
        assert listed.deadline is not None
        assert abs(listed.deadline - (time.time() + deadline - now())) < 0.5
        permit.extend(10 + left)
        more = permit.left()
        assert more is not None
        assert left < more <= left + 10


def test_safe_until_is_the_earlier_end(gate: sync.Semaphore) -> None:
    in_cluster = gate.statistics().guarantee == "lease"
    with gate.hold(SOON) as permit:
        assert (permit.safe_until is None) is not in_cluster
    with gate.hold(SOON, lease=LONG) as permit:
        assert permit.safe_until is not None
        assert permit.safe_until <= now() + LEASE if in_cluster else permit.safe_until == permit.deadline
    permit = gate.hold(SOON, lease=LEASE / 3)
    assert permit.safe_until == permit.deadline
    until(lambda: not permit.valid)
    assert permit.deadline is not None
    assert permit.deadline <= now()
    with pytest.raises(PermitLost, match="lease has expired"):
        permit.check()


def check_nothing_is_guaranteed(permit: sync.Permit) -> None:
    assert not permit.valid
    assert permit.safe_until is not None
    assert permit.safe_until <= now()


@pytest.mark.parametrize("lease", [None, LONG])
def test_nothing_is_guaranteed_of_a_permit_that_was_released(gate: sync.Semaphore, lease: float | None) -> None:
    permit = gate.hold(SOON, lease=lease)
    permit.release()
    check_nothing_is_guaranteed(permit)


@pytest.mark.parametrize("lease", [None, LONG])
def test_nothing_is_guaranteed_in_a_forked_child(gate: sync.Semaphore, lease: float | None) -> None:
    with gate.hold(SOON, lease=lease) as permit:
        child = os.fork()
        if child == 0:
            try:
                check_nothing_is_guaranteed(permit)
                os._exit(0)
            finally:
                os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert permit.valid


@pytest.mark.parametrize("where", ["host", "cluster"])
def test_nothing_is_guaranteed_of_a_permit_that_was_revoked(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, say: Say
) -> None:
    if where == "host":
        monkeypatch.setenv("FAIRGATE_DIR", str(tmp_path / "run"))
        peer, words = request.getfixturevalue("local"), ["gpu", "0"]
    else:
        peer = request.getfixturevalue("cluster")
        words = ["gpu", "0", "--join", peer.engine.identity.address]
    permit = peer.lock("gpu").hold(SOON, lease=LONG)
    assert say("break", "--yes", *words)[0] == 0
    until(lambda: not permit.valid)
    check_nothing_is_guaranteed(permit)


def test_what_a_cluster_guarantees_is_raised_again_and_again(cluster: sync.Peer) -> None:
    with cluster.lock("gpu").hold(SOON) as permit:
        raised = [permit.safe_until or 0.0]
        while len(raised) < 4:
            raised.append(until(lambda: permit.safe_until != raised[-1] and permit.safe_until))
        assert sorted(raised) == raised
        assert permit.valid


def test_a_permit_ends_with_the_guarantee_although_its_lease_goes_on(cluster: sync.Peer) -> None:
    with sync.join(cluster.engine.identity.address) as peer:
        permit = peer.lock("gpu").hold(SOON, lease=LONG)
        with busy(cluster):  # the only voter
            until(lambda: not permit.valid)
            assert permit.safe_until is not None
            assert permit.safe_until <= now()
            left = permit.left()
            assert left is not None
            assert left > LONG - SOON
            with pytest.raises(PermitLost, match="cannot reach a majority of the voters"):
                permit.check()


def test_tasks_see_the_same(cluster: sync.Peer) -> None:
    async def main() -> None:
        async with fairgate.join(cluster.engine.identity.address) as peer:
            gate = peer.lock("gpu")
            async with gate.hold() as permit:
                assert (permit.left(), permit.deadline) == (None, None)
                assert permit.safe_until is not None
                assert [one.deadline for one in await gate.holders()] == [None]
            async with gate.hold(lease=LONG) as permit:
                assert (permit.left() or 0) > LONG - SOON
                assert permit.safe_until is not None
                assert permit.safe_until <= now() + LEASE

    asyncio.run(main())


def test_a_room_keeps_the_two_apart(tmp_path: Path) -> None:
    """What a peer has promised stands in the record of its guest, beside the guest's own lease."""
    with Room(str(tmp_path), "gpu", k=1) as room:
        permit = room.acquire(0, lease=LONG)
        assert permit is not None
        own = permit.deadline()
        for promised, end in ((own + 1, own), (own - 1, own - 1), (0, own)):
            room.file.m[permit.seat + PROMISED] = promised
            [listed] = room.requests()
            assert (listed.deadline, listed.safe_until) == (permit.deadline(), permit.safe_until()) == (own, end)
            assert permit.is_valid()
        room.file.m[permit.seat + PROMISED] = 1  # long ago
        assert (permit.deadline(), permit.safe_until()) == (own, 1)
        assert not permit.is_valid()


# Commands.


def listed(say: Say, *words: str) -> dict[str, Any]:
    found = json.loads(say("who", "--json", *words)[1])
    [gate] = [one for place in (found, *found.get("clusters", [])) for one in place["gates"]]
    [one] = gate["inside"]
    assert isinstance(one, dict)
    return one


@pytest.mark.parametrize("lease", [None, LONG])
def test_who_shows_the_lease_of_a_peer(cluster: sync.Peer, say: Say, lease: float | None) -> None:
    with cluster.lock("gpu").hold(SOON, lease=lease):
        check_deadline(listed(say, "--join", cluster.engine.identity.address), lease)


@pytest.mark.parametrize("lease", [None, LONG])
def test_who_shows_the_lease_of_a_guest(host: GuestHost, say: Say, lease: float | None) -> None:
    with sync.join(host.seed) as peer, peer.lock("gpu").hold(SOON, lease=lease):
        check_deadline(listed(say), lease)


@pytest.mark.parametrize(
    "lease",
    [
        None,
        pytest.param(
            LONG,
            marks=pytest.mark.xfail(
                strict=True, reason="the lease of a guest stands in its room, which its peer's report does not read"
            ),
        ),
    ],
)
def test_who_shows_the_lease_of_a_guest_to_other_hosts(host: GuestHost, say: Say, lease: float | None) -> None:
    with sync.join(host.seed) as peer, peer.lock("gpu").hold(SOON, lease=lease):
        check_deadline(listed(say, "--join", host.seed), lease)


def check_deadline(one: dict[str, Any], lease: float | None) -> None:
    if lease is None:
        assert one["deadline"] is None
    else:
        assert one["deadline"] is not None
        assert abs(one["since"] + lease - one["deadline"]) < 0.5


def test_a_nested_command_of_a_guest_outlives_what_was_guaranteed_at_its_start(host: GuestHost) -> None:
    nested = shlex.join([*FAIRGATE, "run", "gpu", "--join", host.seed, "--", "sh", "-c", "echo in; read x; echo out"])
    outer = host.run("gpu", "--", "sh", "-c", nested)
    with ended([outer]):
        assert line(outer) == "in"
        start = now()
        until(lambda: now() > start + LEASE)
        out, err = outer.communicate(b"\n", timeout=SOON)
        assert (outer.returncode, out) == (0, b"out\n")
        assert err.count(b"\n") == 1  # the note


def test_a_command_of_a_peer_is_ended_by_the_guarantee(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Its own lease would let it run for much longer."""
    monkeypatch.setenv("FAIRGATE_DIR", str(tmp_path / "run"))
    tmp_path.chmod(0o700)
    creator, seed = standing("--create", "--listen", f"unix:{tmp_path}/0", "--lease", "1")
    with ended([creator]):
        holder = inside("gpu", "--join", seed, "--lease", "1h")
        creator.send_signal(signal.SIGSTOP)
        assert holder.wait(SOON) == 128 + signal.SIGTERM
        creator.send_signal(signal.SIGCONT)
        assert b"cannot reach a majority of the voters" in holder.communicate(timeout=SOON)[1]
