"""The members file: joining, leaving, dying, gates and their epochs, with races and failures."""

from __future__ import annotations

import fcntl
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from fairgate.core.ids import NIL, identity
from fairgate.errors import BadInput, KMismatch
from fairgate.net import members as module
from fairgate.net.access import Access, access
from fairgate.net.members import FILE, LOCK, PEERS, Joined, here, join, leave, make_change, read, remove_dead
from fairgate.net.occupancy import Held, occupy
from fairgate.net.roster import EPOCH_ZERO, GateRecord, Members, PidNamespace, Renew, Rise, SeatRecord, Sit
from fairgate.net.watch import start_time
from tests.live.peers import SOON


@pytest.fixture
def rule(tmp_path: Path) -> Access:
    tmp_path.chmod(0o700)
    return access(tmp_path)


@pytest.fixture
def me(rule: Access) -> Iterator[Joined]:
    joined = join(rule)
    yield joined
    joined.listener.close()


@contextmanager
def joiners(folder: Path, count: int) -> Iterator[dict[int, int]]:
    """Starts processes that join; returns {id: pid}."""
    command = [sys.executable, "-m", "tests.live.joiners", str(folder), str(count)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as started:
        assert started.stdout is not None
        try:
            lines = [started.stdout.readline().split() for _ in range(count)]
            yield {int(ident): int(pid) for ident, pid in lines}
        finally:
            started.communicate(timeout=SOON)


def kill(pid: int) -> None:
    """Returns when it is dead, though perhaps not reaped yet."""
    pidfd = os.pidfd_open(pid)
    signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    assert select.select([pidfd], [], [], SOON)[0]
    os.close(pidfd)


def test_ten_processes_join_at_once(rule: Access) -> None:
    with joiners(rule.folder, 10) as ids:
        found = read(rule.folder)
        assert len(ids) == 10
        assert {peer.id: peer.pid for peer in found.peers} == ids
        assert found.version == 10
        assert sorted(path.name for path in rule.folder.iterdir()) == sorted(
            [FILE, LOCK, *[f"{ident}.sock" for ident in ids]]
        )


def test_the_record_of_a_peer(rule: Access, me: Joined) -> None:
    peer = me.me
    assert read(rule.folder) == me.members
    assert (peer.pid, peer.uid, peer.started) == (os.getpid(), os.geteuid(), start_time(os.getpid()))
    assert peer.socket == me.listener.getsockname() == str(rule.folder / f"{peer.id}.sock")
    assert Path(peer.socket).stat().st_mode & 0o777 == 0o600
    assert 0 < peer.id < PEERS
    assert abs(peer.since - time.time()) < SOON
    assert (rule.folder / FILE).stat().st_mode & 0o777 == 0o600


def test_a_killed_peer_is_removed_once_with_its_socket(rule: Access) -> None:
    with joiners(rule.folder, 3) as ids:
        victim, *others = ids
        assert remove_dead(rule)[1] == ()
        kill(ids[victim])
        found, gone = remove_dead(rule)
        assert [peer.id for peer in gone] == [victim]
        assert {peer.id for peer in found.peers} == set(others)
        assert not (rule.folder / f"{victim}.sock").exists()
        assert remove_dead(rule) == (found, ())


def test_a_joiner_removes_the_dead(rule: Access) -> None:
    with joiners(rule.folder, 2) as ids:
        for pid in ids.values():
            kill(pid)
        joined = join(rule)
        joined.listener.close()
        assert [peer.id for peer in joined.members.peers] == [joined.me.id]
        assert [path.name for path in rule.folder.glob("*.sock")] == [f"{joined.me.id}.sock"]


def test_a_reused_pid_does_not_count_as_alive(rule: Access, me: Joined) -> None:
    earlier = msgspec.structs.replace(me.me, id=5, started=me.me.started - 1)
    module.change(rule, lambda found: msgspec.structs.replace(found, peers=(*found.peers, earlier)))
    assert remove_dead(rule)[1] == (earlier,)


def test_leaving(rule: Access, me: Joined) -> None:
    other = join(rule)
    after = leave(rule, me.me.id)
    assert [peer.id for peer in after.peers] == [other.me.id]
    assert not Path(me.me.socket).exists()
    assert leave(rule, me.me.id) == after
    other.listener.close()


def test_a_stale_socket_is_removed(rule: Access) -> None:
    (rule.folder / "123.sock").touch()
    join(rule).listener.close()
    assert not (rule.folder / "123.sock").exists()


# Gates.


def sit(rule: Access, name: str, k: int, host: int, *seats: int, protocol: str = "fair_k") -> GateRecord:
    idents = tuple([identity(host, seat) for seat in seats or (0,)])
    gate = make_change(rule, Sit(name, k, protocol, host, idents)).gate(name)
    assert gate is not None
    return gate


def test_a_gate_is_opened_once(rule: Access, me: Joined) -> None:
    gate = sit(rule, "gpu", 3, me.me.id)
    assert (gate.name, gate.k, gate.protocol) == ("gpu", 3, "fair_k")
    assert abs(gate.view + EPOCH_ZERO - time.time()) < SOON
    version = read(rule.folder).version
    assert sit(rule, "gpu", 3, me.me.id) == gate
    assert read(rule.folder).version == version  # nothing changed, nothing written
    other = join(rule)
    with pytest.raises(KMismatch, match="gate gpu is open with k=3, not k=2") as wrong:
        sit(rule, "gpu", 2, other.me.id)
    assert (wrong.value.asked, wrong.value.found) == (2, 3)
    with pytest.raises(BadInput, match="runs fair_k, not raymond"):
        sit(rule, "gpu", 3, other.me.id, protocol="raymond")
    other.listener.close()


def test_every_change_of_seats_makes_a_new_view(rule: Access, me: Joined) -> None:
    one, other = me.me.id, join(rule)
    two = other.me.id
    views = [sit(rule, "gpu", 3, one)]
    assert [(seat.host, seat.virtual) for seat in views[0].seats] == [(one, False), (one, True), (one, True)]
    views.append(sit(rule, "gpu", 3, two))
    assert [(seat.host, seat.virtual) for seat in views[1].seats] == [(one, False), (two, False), (one, True)]
    views.append(sit(rule, "gpu", 3, two, 1, 2))
    assert views[2].idents() == (identity(one, 0), identity(two, 0), identity(two, 1), identity(two, 2))
    after = make_change(rule, Rise("gpu", (identity(one, 0), identity(two, 1)))).gate("gpu")
    assert after is not None
    assert [(seat.host, seat.virtual) for seat in after.seats] == [(two, False), (two, False), (two, True)]
    again = make_change(rule, Renew("gpu")).gate("gpu")
    assert again is not None
    assert again.seats == after.seats
    numbers = [view.view for view in [*views, after, again]]
    assert numbers == sorted(set(numbers))
    other.listener.close()


def test_seats_of_dead_peers_go_and_ghosts_stay(rule: Access, me: Joined) -> None:
    with joiners(rule.folder, 1) as ids:
        (victim,) = ids
        sit(rule, "gpu", 2, victim, 0, 1)
        sit(rule, "gpu", 2, me.me.id)
        occupancy = occupy(rule, Held("gpu", identity(victim, 1), 1))
        kill(ids[victim])
        found, _ = remove_dead(rule)
        seats = found.gates[0].seats
        assert seats == (
            SeatRecord(identity(me.me.id, 0), me.me.id),
            ghost := SeatRecord(identity(victim, 1), me.me.id, False, True, 1),
        )
        leave(rule, me.me.id)  # no peer is left, but the ghost is still inside
        assert read(rule.folder).gates[0].seats == (msgspec.structs.replace(ghost, host=NIL),)
        again = join(rule)
        assert sit(rule, "gpu", 2, again.me.id).seats[1:] == (msgspec.structs.replace(ghost, host=again.me.id),)
        occupancy.end()
        assert remove_dead(rule)[0].gates[0].seats[1].virtual
        again.listener.close()


def test_bad_gates(rule: Access, me: Joined) -> None:
    for name in ("", "x" * 201, "two\nlines"):
        with pytest.raises(BadInput, match="is not a valid gate name"):
            sit(rule, name, 1, me.me.id)
    with pytest.raises(BadInput, match="k must be a whole number from 1 to 1000, not 0"):
        sit(rule, "x", 0, me.me.id)
    with pytest.raises(BadInput, match="k must be a whole number from 1 to 1000, not 1001"):
        sit(rule, "x", 1001, me.me.id)
    with pytest.raises(BadInput, match="is no longer a member"):
        sit(rule, "x", 1, 4)
    before = read(rule.folder)
    assert make_change(rule, Renew("x")) == before  # the gate no longer exists


def test_views_rise_whatever_the_clock_does(rule: Access, me: Joined, monkeypatch: pytest.MonkeyPatch) -> None:
    views = [sit(rule, "a", 1, me.me.id).view, sit(rule, "b", 1, me.me.id).view]
    monkeypatch.setattr(time, "time", lambda: 0.0)  # 1970
    views += [sit(rule, "c", 1, me.me.id).view, make_change(rule, Renew("a")).gates[-1].view]
    make_change(rule, Rise("c", (identity(me.me.id, 0),)))
    views.append(sit(rule, "c", 2, me.me.id).view)
    leave(rule, me.me.id)
    assert read(rule.folder).gates == ()
    again = join(rule)
    views.append(sit(rule, "a", 5, again.me.id).view)  # no peer was left, so k may differ
    assert views == sorted(set(views))
    assert views[-1] == read(rule.folder).epoch
    monkeypatch.setattr(time, "time", lambda: 2.0**40)
    with pytest.raises(BadInput, match="have run out"):
        make_change(rule, Renew("a"))
    again.listener.close()


# Failures.


def move(rule: Access, place: PidNamespace) -> None:
    module.change(rule, lambda found: msgspec.structs.replace(found, place=place))


def test_after_a_reboot_all_peers_are_dead(rule: Access, me: Joined) -> None:
    place = here()
    move(rule, PidNamespace(place.host, "an earlier boot", place.pids))
    joined = join(rule)
    joined.listener.close()
    assert [peer.id for peer in joined.members.peers] == [joined.me.id]
    assert joined.members.place == place


def test_peers_of_another_host_cannot_be_checked(rule: Access, me: Joined) -> None:
    move(rule, PidNamespace("elsewhere", "its boot", 1))
    with pytest.raises(BadInput, match="in use on the host elsewhere"):
        join(rule)


def test_peers_of_another_container_cannot_be_checked_while_they_answer(rule: Access, me: Joined) -> None:
    place = here()
    move(rule, PidNamespace(place.host, place.boot, place.pids + 1))
    with pytest.raises(BadInput, match="in use in another container"):
        join(rule)
    me.listener.close()
    joined = join(rule)
    joined.listener.close()
    assert [peer.id for peer in joined.members.peers] == [joined.me.id]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"{", "is damaged"),
        (b'{"peers": 5}', "is damaged"),
        (b"\xff\xfe", "is damaged"),
        (b'{"schema": 2}', "another version of fairgate"),
    ],
)
def test_an_unreadable_file_is_reported_in_one_line(rule: Access, text: bytes, words: str) -> None:
    (rule.folder / FILE).write_bytes(text)
    with pytest.raises(BadInput, match=words) as wrong:
        join(rule)
    assert "\n" not in str(wrong.value)
    assert list(rule.folder.glob("*.sock")) == []


def test_a_killed_writer_leaves_the_file_intact(rule: Access, me: Joined) -> None:
    (rule.folder / f"{FILE}.new").write_bytes(b"half a fi")
    assert leave(rule, me.me.id).peers == ()
    assert sorted(path.name for path in rule.folder.iterdir()) == sorted([FILE, LOCK])


def test_a_lock_that_is_never_released_is_reported(rule: Access, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOCK_SECONDS", 0.05)
    with (rule.folder / LOCK).open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(BadInput, match="is a peer stopped"):
            join(rule)
    join(rule).listener.close()


def test_a_missing_file_means_no_members(rule: Access) -> None:
    assert read(rule.folder) == Members()


def test_a_missing_directory_is_reported(rule: Access, me: Joined) -> None:
    for path in rule.folder.iterdir():
        path.unlink()
    rule.folder.rmdir()
    with pytest.raises(BadInput, match="cannot write to"):
        leave(rule, me.me.id)


def test_files_in_a_shared_directory_belong_to_its_group(tmp_path: Path) -> None:
    tmp_path.chmod(0o770)
    before = os.umask(0o077)
    try:
        joined = join(access(tmp_path))
    finally:
        os.umask(before)
    joined.listener.close()
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o660}
    assert {path.stat().st_gid for path in tmp_path.iterdir()} == {tmp_path.stat().st_gid}
