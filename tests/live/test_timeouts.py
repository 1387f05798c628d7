"""AcquireTimeout names the holders, as far as they are known at once."""

from __future__ import annotations

import asyncio
import fcntl
import os
import pickle
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fairgate import AcquireTimeout, sync
from fairgate.interface import held_by
from fairgate.request import Request
from fairgate.room import calls
from fairgate.room.host import GLANCE
from tests.live.kinds import CLUSTER, GUESTS, ROOM, Kind, each_place, of_kinds

HOST = socket.gethostname()


def timeout_of(gate: sync.Semaphore) -> AcquireTimeout:
    with pytest.raises(AcquireTimeout) as caught:
        gate.hold(timeout=0.01)
    return caught.value


@each_place
def test_the_holder_is_named(kind: Kind) -> None:
    with kind.sync_join() as peer:
        gate = peer.lock("report")
        with gate.hold(note="run\n7") as permit:
            wrong = timeout_of(gate)
        assert str(wrong).startswith(
            f"timed out waiting for gate report (0.01 s), held by pid {os.getpid()} on {HOST} for "
        )
        assert str(wrong).endswith(' s ("run?7")')
        (holder,) = wrong.holders
        assert (holder.pid, holder.host, holder.note, holder.slots) == (os.getpid(), HOST, "run\n7", permit.slots)
        assert abs(holder.since - time.time()) < 60
        again = pickle.loads(pickle.dumps(wrong))
        assert (str(again), again.holders) == (str(wrong), wrong.holders)


@each_place
def test_the_holder_is_named_in_asyncio(kind: Kind) -> None:
    async def main() -> None:
        async with kind.join() as peer:
            gate: Any = peer.lock("report")
            async with gate.hold(note="run 7"):
                with pytest.raises(AcquireTimeout, match=f'held by pid {os.getpid()} on .* for .* s \\("run 7"\\)'):
                    async with gate.hold(timeout=0.01):
                        pass

    asyncio.run(main())


HOLD = """
import sys
from fairgate import sync
with sync.join() as peer, peer.lock("report").hold(note="from afar"):
    print(flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def other() -> Iterator[subprocess.Popen[str]]:
    """Another process of this host that is inside."""
    process = subprocess.Popen([sys.executable, "-c", HOLD], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
        process.kill()


@of_kinds(ROOM)
def test_another_process_is_named(kind: Kind, other: subprocess.Popen[str]) -> None:
    with kind.sync_join() as peer:
        assert f"held by pid {other.pid} on {HOST} for " in str(timeout_of(peer.lock("report")))


def request(number: int, note: str = "") -> Request:
    return Request(True, (number,), 7, 1000 + number, "web1", time.time() - 12, None, note)


def test_the_message_is_bounded() -> None:
    said = held_by([request(each, "x" * 1000) for each in range(1000)])
    assert said.endswith(", and 997 more")
    assert len(said) < 300
    assert held_by([request(1), request(2)]) == (", held by pid 1001 on web1 for 12 s, pid 1002 on web1 for 12 s")
    assert held_by([]) == ""


@of_kinds(ROOM)
def test_a_table_that_is_locked_is_read_without_the_lock(kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stopped process may have the lock: whoever is late is not kept waiting by it any longer."""
    with kind.sync_join() as peer:
        gate = peer.lock("report")
        with gate:
            backend: Any = gate.gate
            waits: list[int] = []
            lock: Any = calls.lock

            def waits_for(fd: int, patience: int, since: int = 0) -> bool:
                waits.append(patience)
                return bool(lock(fd, patience, since))

            fd = os.open(backend.room.file.path, os.O_RDONLY)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX)
                monkeypatch.setattr(calls, "lock", waits_for)
                (holder,) = gate.timed_out(5).holders
                assert holder.pid == os.getpid()
                assert waits == [GLANCE]
            finally:
                os.close(fd)


@of_kinds(ROOM)
def test_what_cannot_be_read_does_not_hide_the_timeout(kind: Kind, tmp_path: Path) -> None:
    with kind.sync_join() as peer:
        gate = peer.lock("report")
        backend: Any = gate.gate
        with gate:
            os.rename(backend.room.file.path, tmp_path / "kept")
            assert str(gate.timed_out(5)) == "timed out waiting for gate report (5 s)"
            (tmp_path / "run" / "report.gate").write_bytes(b"no gate" * 10_000)
            assert str(gate.timed_out(5)) == "timed out waiting for gate report (5 s)"
            os.rename(tmp_path / "kept", backend.room.file.path)


@of_kinds(CLUSTER, GUESTS)
def test_a_holder_at_another_peer_is_not_asked_for(kind: Kind) -> None:
    """It would take a message and its answer, so the timeout would be late."""
    with kind.sync_join() as one, kind.sync_join() as two:
        with one.lock("report"):
            wrong = timeout_of(two.lock("report"))
        assert [holder.pid for holder in wrong.holders] == ([os.getpid()] if kind.name == GUESTS else [])
