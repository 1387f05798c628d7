"""Clusters over Unix sockets: the files of the sockets, joining, broken connections, and the commands."""

from __future__ import annotations

import os
import signal
import socket
import stat
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairgate import sync
from fairgate.errors import BadInput
from fairgate.live.in_cluster import NO_KEEPER
from fairgate.net.unix_socket import LONGEST_PATH, listen_unix, locked, path_beside
from tests.live.commands import SOON, end, end_by, inside, line, run, standing, start, until, until_waiting
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
    before = path.stat().st_ino
    with listen_unix(path):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert path.stat().st_ino != before


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
    gun = threading.Barrier(8)

    def attempt() -> None:
        gun.wait(SOON)
        try:
            found.append(listen_unix(folder / "0"))
        except BadInput as wrong:
            assert "another process listens there" in str(wrong)

    threads = [threading.Thread(target=attempt) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SOON)
    [listener] = found
    listener.close()


def test_a_lock_that_is_never_released_is_reported(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairgate.net.unix_socket.LOCK_SECONDS", 0.05)
    with locked(folder), pytest.raises(BadInput, match="has held the lock of .* is it stopped?"):
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
    return peer.engine.identity.socket


def test_peers_share_gates_and_leave_no_files(folder: Path) -> None:
    with sync.join(listen=f"unix:{folder}/0") as keeper, sync.join(address(keeper)) as one:
        with sync.join(address(one)) as two:  # through a peer that is not the keeper
            assert len(names(folder)) == 3
            assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
            assert all(address(peer).startswith(f"unix:{folder}/0.") for peer in (one, two))
            gates = [peer.semaphore("gpu", 2, "fair_k") for peer in (keeper, one, two)]
            for _ in range(10):
                for gate in gates:
                    with gate:
                        pass
            with gates[0], gates[1]:
                assert gates[2].acquire(timeout=0.05) is None
                assert [holder.slot for holder in gates[2].holders()] == [0, 1]
            assert gates[0].statistics().guarantee == "none"
        assert len(names(folder)) == 2
    assert names(folder) == []


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


def test_peers_of_both_kinds_are_not_mixed(keeper: sync.Peer) -> None:
    """The keeper checks it too: a joiner may be reachable at another address than the one it listens on."""
    with sync.join(address(keeper)) as other:
        other.engine.transport.send(
            keeper.engine.me, ("join", "127.0.0.1:1", 1, 1, 1, 1, "host")
        )  # from a member: ignored
    wrong = "refused by the cluster: a cluster uses either Unix sockets or TCP"
    with pytest.raises(BadInput, match=wrong):
        join_as("127.0.0.1:1", address(keeper))


def join_as(told: str, seed: str) -> None:
    """Joins with an address of the other kind, which `join` itself refuses."""
    raise NotImplementedError(told + seed)
