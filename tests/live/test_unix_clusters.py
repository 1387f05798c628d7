"""Clusters over Unix sockets: the files of the sockets, joining, broken connections, and the commands."""

from __future__ import annotations

import os
import signal
import socket
import stat
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from fairgate import sync
from fairgate.errors import BadInput, KMismatch
from fairgate.live.in_cluster import ClusterMembership
from fairgate.live.live_protocols import default_protocol
from fairgate.live.reliable import DirectLinks
from fairgate.live.threads import ClusterPeer
from fairgate.net.address import parse_address
from fairgate.net.unix_socket import LONGEST_PATH, listen_unix, locked, path_beside
from fairgate.recovery.agreed import Join, TurnedAway
from fairgate.recovery.roster import Newcomer, PeerRecord, as_key
from tests.live import peers
from tests.live.commands import SOON, end, end_by, inside, line, run, standing, start, until, until_waiting
from tests.live.gates import busy
from tests.live.peers import leave_dead_socket


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FAIRGATE_DIR", str(tmp_path / "run"))
    monkeypatch.setenv("COLUMNS", "160")
    (tmp_path / "sockets").mkdir(mode=0o700)
    return tmp_path / "sockets"


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


# The files of sockets.


def test_the_socket_of_a_dead_process_is_replaced(folder: Path) -> None:
    path = folder / "0"
    leave_dead_socket(path)
    with listen_unix(path):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        with socket.socket(socket.AF_UNIX) as other:
            other.connect(str(path))


def test_a_shared_socket_belongs_to_the_group_of_its_directory(folder: Path) -> None:
    with listen_unix(folder / "0", shared=True):
        found = (folder / "0").stat()
        assert (stat.S_IMODE(found.st_mode), found.st_gid) == (0o660, folder.stat().st_gid)


def test_the_socket_of_a_living_process_is_left_alone(folder: Path) -> None:
    with listen_unix(folder / "0") as listener:
        for _ in range(200):  # more than its backlog holds: it does not accept, and is alive all the same
            with pytest.raises(BadInput, match="another process listens there; join it, or use another path"):
                listen_unix(folder / "0")
        assert listener.getsockname() == str(folder / "0")


def test_other_files_are_left_alone(folder: Path) -> None:
    leave_dead_socket(folder / "dead")
    (folder / "file").write_text("precious")
    (folder / "link").symlink_to(folder / "dead")
    (folder / "directory").mkdir()
    os.mkfifo(folder / "pipe")
    for name in ("file", "link", "directory", "pipe"):
        with pytest.raises(BadInput, match="there is a file that is not a socket"):
            listen_unix(folder / name)
    assert names(folder) == ["dead", "directory", "file", "link", "pipe"]


def test_only_dead_sockets_with_names_of_ours_are_swept(folder: Path) -> None:
    for name in ("0.0123abcd", "0.sock", "0.0123ABCD", "0.0123abcde", "1.0123abcd", "00.0123abcd"):
        leave_dead_socket(folder / name)
    (folder / "0.00000000").touch()
    with listen_unix(folder / "0.ffffffff"), listen_unix(folder / "0"):
        assert names(folder) == [
            "0", "0.00000000", "0.0123ABCD", "0.0123abcde", "0.ffffffff", "0.sock", "00.0123abcd", "1.0123abcd",
        ]  # fmt: skip


def test_of_many_that_find_a_dead_socket_one_replaces_it(folder: Path) -> None:
    leave_dead_socket(folder / "0")
    found: list[socket.socket] = []
    refused: list[str] = []
    gun = threading.Barrier(8)

    def attempt() -> None:
        gun.wait(SOON)
        try:
            found.append(listen_unix(folder / "0"))
        except BadInput as wrong:
            refused.append(str(wrong))

    threads = [threading.Thread(target=attempt) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SOON)
    [listener] = found
    listener.close()
    assert ["another process listens there" in one for one in refused] == [True] * 7


def test_a_lock_that_is_never_released_is_reported(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairgate.net.unix_socket.LOCK_SECONDS", 0.05)
    with locked(folder), pytest.raises(BadInput, match=r"has held the lock of .*: is it stopped\?"):
        listen_unix(folder / "0")
    listen_unix(folder / "0").close()


def test_long_paths_are_reported_in_one_line(folder: Path) -> None:
    room = LONGEST_PATH - len(str(folder)) - 1
    with pytest.raises(BadInput, match=rf"too long for a Unix socket \({LONGEST_PATH + 1} bytes, at most"):
        sync.join(listen=f"unix:{folder}/{'x' * (room + 1)}")
    longest = f"{folder}/{'x' * room}"
    with sync.join(listen=f"unix:{longest}"):
        with pytest.raises(BadInput, match=r"too long for this peer .*\(at most 98 bytes\): give it another address"):
            sync.join(f"unix:{longest}")
        with sync.join(f"unix:{longest}", listen=f"unix:{folder}/1"):
            assert names(folder) == ["1", "x" * room]
    assert len(path_beside("/" + "x" * 97)) == LONGEST_PATH


# Joining.


@pytest.fixture
def keeper(folder: Path) -> Iterator[sync.Peer]:
    with sync.join(listen=f"unix:{folder}/0") as peer:
        yield peer


def address(peer: sync.Peer) -> str:
    return peer.engine.identity.address


def test_peers_share_gates_and_leave_no_files(folder: Path) -> None:
    with sync.join(listen=f"unix:{folder}/0") as keeper, sync.join(address(keeper)) as one:
        with sync.join(address(one)) as two:  # through a peer that is not the keeper
            assert len(names(folder)) == 3
            assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
            assert all(address(peer).startswith(f"unix:{folder}/0.") for peer in (one, two))
            gates = [peer.semaphore("gpu", 2, "centralised") for peer in (keeper, one, two)]
            for _ in range(10):
                for gate in gates:
                    with gate:
                        pass
            with gates[0], gates[1]:
                assert gates[2].acquire(timeout=0.05) is None
                assert [holder.slot for holder in gates[2].holders()] == [0, 1]
            assert gates[0].statistics().guarantee == "lease"
        assert len(names(folder)) == 2
    assert names(folder) == []


def test_a_peer_that_names_no_protocol_takes_the_one_that_the_gate_runs(keeper: sync.Peer) -> None:
    """Peers of two versions may have different defaults."""
    with sync.join(address(keeper)) as one:
        with keeper.semaphore("gpu", 2, "raymond"):
            until(lambda: one.engine.members.gate("gpu") is not None)
            assert one.semaphore("gpu", 2).statistics().protocol == "raymond"
        assert one.semaphore("other", 2).statistics().protocol == default_protocol(2)
        with pytest.raises(BadInput, match="gate gpu runs raymond, not fair_k: all its peers must agree"):
            one.semaphore("gpu", 2, "fair_k").acquire()


def test_joining_and_sitting_are_one_change(keeper: sync.Peer) -> None:
    views = cast(ClusterMembership, keeper.engine.membership).driver.views
    before = views.at
    with sync.Peer(ClusterPeer((address(keeper),), None, {}, ("gpu", 3, None))) as one:
        assert views.at == before + 1
        with one.semaphore("gpu", 3):
            assert views.at == before + 1
            record = keeper.engine.members.gate("gpu")
            assert record is not None
            assert record.hosts == ((one.engine.me, 1),)
            with pytest.raises(KMismatch):
                ClusterPeer((address(keeper),), None, {}, ("gpu", 2, None))


def test_a_cluster_is_not_created_where_another_one_is(keeper: sync.Peer) -> None:
    with pytest.raises(BadInput, match="another process listens there"):
        sync.join(listen=address(keeper))
    with sync.join(address(keeper)) as other, other.lock("report"):
        pass


def test_a_killed_cluster_is_replaced(folder: Path) -> None:
    seed = f"unix:{folder}/0"
    keeper, _ = standing("--create", "--listen", seed)
    other, _ = standing("gpu", "--join", seed)
    for process in (keeper, other):
        process.kill()
        process.communicate()
    assert len(names(folder)) == 2
    with sync.join(listen=seed) as new:
        assert names(folder) == ["0"]
        with new.lock("gpu"):
            pass


def test_a_file_that_was_replaced_by_hand_is_not_removed(keeper: sync.Peer, folder: Path) -> None:
    (folder / "0").unlink()
    with sync.join(listen=address(keeper)) as other:
        keeper.close()
        with sync.join(address(other)):
            assert "0" in names(folder)


def test_peers_that_others_could_not_reach_are_refused(keeper: sync.Peer) -> None:
    """`join` refuses such addresses itself, so this one speaks to the peer directly."""

    async def main() -> None:
        stranger = peers.Peer(77, "fairgate")
        stranger.transport.dial(parse_address(address(keeper)))
        await stranger.until("up", keeper.engine.me)
        about = as_key(Newcomer(PeerRecord(77, "127.0.0.1:1", "secret")))
        stranger.transport.send(keeper.engine.me, (Join.tag, about, False))
        answer = (await stranger.until("frame"))[2]
        assert answer[:2] == (TurnedAway.tag, 77)
        assert answer[-1].startswith("a cluster uses either Unix sockets or TCP: unix:/")
        await peers.close_all(stranger)

    peers.run(main())
    assert [peer.id for peer in keeper.engine.members.peers] == [keeper.engine.me]


def test_a_directory_that_others_may_only_read_can_be_used(folder: Path) -> None:
    folder.chmod(0o755)
    with sync.join(listen=f"unix:{folder}/0") as keeper, sync.join(address(keeper)) as other, other.lock("report"):
        pass
    folder.chmod(0o777)
    with pytest.raises(BadInput, match="accessible to everyone"):
        sync.join(listen=f"unix:{folder}/0")


def test_another_address_can_be_advertised(folder: Path) -> None:
    """As when the directory is mounted in another place elsewhere."""
    (folder / "here").mkdir(mode=0o700)
    (folder / "there").symlink_to(folder / "here")
    with (
        sync.join(listen=f"unix:{folder}/here/0", advertise=f"unix:{folder}/there/0") as keeper,
        sync.join(address(keeper)) as other,
    ):
        assert address(keeper) == f"unix:{folder}/there/0"
        assert address(other).startswith(f"unix:{folder}/there/0.")
        with other.lock("report"):
            pass


def test_a_leaving_peer_waits_for_a_slow_voter(keeper: sync.Peer, caplog: pytest.LogCaptureFixture) -> None:
    other = sync.join(address(keeper))
    thread = threading.Thread(target=other.close)
    with busy(keeper):
        thread.start()
        thread.join(0.3)
        assert thread.is_alive()
    thread.join(SOON)
    until(lambda: len(keeper.engine.members.peers) == 1)
    assert "could not leave" not in caplog.text


# Links.


def test_only_the_messages_of_gates_bypass_the_channel(keeper: sync.Peer) -> None:
    with sync.join(address(keeper)) as one, sync.join(address(keeper)) as two:
        gates = [peer.lock("report") for peer in (one, two)]
        for gate in gates:
            gate.hold(SOON).release()
        sent = numbers_sent(one)
        for _ in range(10):
            for gate in gates:
                gate.hold(SOON).release()
        assert gates[0].statistics().messages_sent > 5
        assert numbers_sent(one) == sent
        one.engine.links.send(two.engine.me, ("tell", 0, b""))
        assert numbers_sent(one) == sent + 1


def numbers_sent(peer: sync.Peer) -> int:
    """How many frames the peer has sent over the channel so far."""
    links = peer.engine.links
    assert isinstance(links, DirectLinks)
    return sum([link.sent for link in links.channel.links.values()])


ENTERS_AND_STAYS = """
import sys
from fairgate import sync

with sync.join(sys.argv[1]) as peer:
    peer.lock("gpu", "suzuki_kasami").hold(20).release()
    print("has a seat", flush=True)
    sys.stdin.read()
"""


def test_a_killed_peer_is_excluded_and_the_others_go_on(keeper: sync.Peer, caplog: pytest.LogCaptureFixture) -> None:
    with sync.join(address(keeper)) as one, sync.join(address(keeper)) as two:
        gates = [peer.lock("gpu", "suzuki_kasami") for peer in (one, two)]
        other = start(address(keeper), command=[sys.executable, "-c", ENTERS_AND_STAYS])
        assert line(other) == "has a seat"
        for gate in gates:
            gate.hold(SOON).release()
        other.kill()
        other.communicate()
        until(lambda: len(one.engine.members.peers) == 3)
        for gate in gates:
            gate.hold(SOON).release()
    assert caplog.text.count(f"(pid {other.pid} on ") == 1  # only the standing peer says so
    assert "was excluded: it could not be reached" in caplog.text


# Commands.


def test_commands_of_a_cluster_on_one_host(folder: Path) -> None:
    seed = f"unix:{folder}/0"
    keeper = start("peer", "gpu", "--create", "--listen", seed, "--protocol", "fair_k")
    assert line(keeper).endswith(
        f"of cluster fairgate at {seed} (guarantee: lease) and keeps gpu open (k=1, fair_k) until a signal ends it"
    )
    holder = inside("gpu", "--protocol", "fair_k", "--join", seed)
    waiter = start("run", "gpu", "--protocol", "fair_k", "--join", seed, "--", "echo", "in")
    until_waiting("gpu", 1, seed)
    rows = run("who", "--join", seed).stdout.splitlines()
    assert rows[0].rstrip() == "gpu: 1 of 1 inside, 1 waiting (fair_k)"
    assert rows[-1].rstrip() == "3 peers of cluster fairgate, guarantee: lease; survives 0 more failures"
    assert run("break", "gpu", "0", "--yes", "--join", seed).returncode == 0
    assert line(waiter) == "in"
    assert end(waiter) == 0
    assert end(holder) == 128 + signal.SIGTERM
    assert end_by(signal.SIGTERM, keeper) == (0, "SIGTERM: leaving\n", "")
    assert names(folder) == []


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--create", "--listen", f"unix:{os.sep}tmp/x"), "/tmp is accessible to everyone (mode 1777): use a"),
        (("--create", "--listen", "unix:/none/x"), "cannot use /none: No such file or directory"),
        (("--create", "--listen", f"unix:/{'x' * 120}"), f"/{'x' * 120} is too long for a Unix socket (121 bytes"),
        (("--join", f"unix:/{'x' * 99}"), f"unix:/{'x' * 99} is too long for this peer to put its own socket beside"),
        (("--join", "unix:/x", "--mdns"), "--mdns finds peers on the network"),
        (("--join", "unix:/x", "--keys", "k"), "--keys is for TLS, which Unix sockets do not use"),
    ],
)
def test_bad_addresses(words: tuple[str, ...], expected: str) -> None:
    done = run("peer", *words)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith(f"fairgate: {expected}")
