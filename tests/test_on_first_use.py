"""Gates that a module creates when it is imported: every process opens its own, however it was started."""

from __future__ import annotations

import asyncio
import fcntl
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

import fairgate
from fairgate import BadInput, GateClosed, KMismatch, sync
from fairgate.on_first_use import peers
from fairgate.room import bell, room
from fairgate.room.peer import RoomGate, ThreadHostPeer
from tests.support import prefork

ROOT = Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where the gates are. Gates of this process that others have opened are not there."""
    monkeypatch.setenv("FAIRGATE_DIR", str(tmp_path / "run"))
    peers.clear()
    yield tmp_path / "run"
    for one in list(room.open_rooms):
        one.close()
    peers.clear()


def in_child(work: Callable[[], bool]) -> bool:
    """What it says in a forked child."""
    child = os.fork()
    if child == 0:
        code = 2
        try:
            code = int(work())
        finally:
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, 1)
    return bool(code)


def test_nothing_is_opened_before_the_first_use(folder: Path) -> None:
    gate, other = sync.semaphore("gpu", 3), fairgate.semaphore("gpu", 3)
    for each in (gate, other):
        assert repr(each) == "<gate gpu, k=3, room, not opened yet>"
        assert each.k == 3
    assert not folder.exists()
    with gate:
        assert repr(gate) == "<gate gpu, k=3, room, open>"
    assert folder.exists()


def test_a_name_or_k_that_cannot_be_is_refused_at_once() -> None:
    for wrong in (lambda: sync.lock(""), lambda: fairgate.lock("a\nb"), lambda: sync.semaphore("gpu", 0)):
        with pytest.raises(BadInput):
            wrong()


def test_it_is_the_gate_of_that_name() -> None:
    gate = sync.semaphore("gpu", 2)
    with sync.join() as peer, peer.semaphore("gpu", 2).hold(note="other") as other:
        with gate as permit:
            assert {permit.slot, other.slot} == {0, 1}
            assert [one.note for one in gate.holders()] == ["other", ""]
            assert gate.acquire(timeout=0) is None
            with pytest.raises(fairgate.AcquireTimeout):
                gate.hold(timeout=0)
        with gate.hold(timeout=5, lease=60) as permit:
            assert permit.deadline is not None
        with pytest.raises(KMismatch):
            sync.semaphore("gpu", 3).acquire()
        gate.resize(3)
        assert gate.k == 3
        assert gate.statistics().entries == 3


def test_two_objects_of_a_name_share_what_the_process_has_open() -> None:
    bells = len(bell.ours)  # of loops that other tests have ended
    for _ in range(3):
        with sync.lock("report"):
            assert len(room.open_rooms) == 1
    assert len(bell.ours) <= bells + 1


def test_a_closed_gate_stays_closed_in_this_process() -> None:
    gate = sync.lock("report")
    gate.hold().release()
    gate.close()
    with pytest.raises(GateClosed):
        gate.acquire()
    assert repr(gate) == "<gate report, k=1, room, closed>"
    with sync.lock("report"):
        pass

    def enters() -> bool:
        gate.hold(timeout=5).release()
        return True

    assert in_child(enters)


def test_closing_an_unused_gate_opens_nothing(folder: Path) -> None:
    gate, other = sync.lock("report"), fairgate.lock("report")
    for _ in range(2):
        gate.close()
        asyncio.run(other.close())
    assert not folder.exists()
    for each in (gate, other):
        assert repr(each) == "<gate report, k=1, room, closed>"
    for use in (gate.acquire, gate.requests, lambda: asyncio.run(other.acquire())):
        with pytest.raises(GateClosed, match=r"^gate report was closed$"):
            use()
    assert not folder.exists()
    with sync.semaphore("report", 2):
        sync.lock("report").close()  # k is only looked at when a gate is opened

    def enters() -> bool:
        gate.hold(timeout=5).release()
        return True

    assert in_child(enters)


def test_a_gate_that_is_closed_while_it_is_opened_stays_closed() -> None:
    """As by another thread."""
    gate = sync.lock("report")

    class Slow(ThreadHostPeer):
        def gate(self, name: str, k: int, protocol: str | None) -> RoomGate:
            gate.close()
            return super().gate(name, k, protocol)

    peers[ThreadHostPeer] = Slow()
    for _ in range(2):
        with pytest.raises(GateClosed):
            gate.acquire()


def test_asyncio_in_one_loop_after_the_other(folder: Path) -> None:
    async def main() -> None:
        async with prefork.in_tasks as permit:
            assert permit.slot == 0
            assert await prefork.in_tasks.acquire(timeout=0) is None
        async with prefork.in_tasks.hold(timeout=5):
            pass
        await prefork.visit_in_task(folder)

    asyncio.run(main())
    asyncio.run(main())


def test_async_with_ends_after_its_release(folder: Path) -> None:
    """The loop runs no longer than that, and nobody would release it later if the lock is not free just then."""
    locks: list[threading.Timer] = []

    async def main() -> None:
        async with prefork.in_tasks:
            file = os.open(folder / "report.gate", os.O_RDONLY)
            fcntl.flock(file, fcntl.LOCK_EX)
            locks.append(threading.Timer(0.2, os.close, [file]))
            locks[0].start()

    with closing(asyncio.new_event_loop()) as loop:
        loop.run_until_complete(main())
        with prefork.report.hold(timeout=5):
            locks[0].join()


def test_threads_open_it_once() -> None:
    gate = sync.semaphore("gpu", 8)
    together = threading.Barrier(8)

    def visit() -> None:
        together.wait()
        with gate:
            together.wait()

    threads = [threading.Thread(target=visit) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert gate.statistics().entries == 8
    assert len(room.open_rooms) == 1


def test_a_forked_child_opens_its_own() -> None:
    with prefork.report:
        assert not in_child(prefork.try_to_enter)
        assert not in_child(lambda: in_child(prefork.try_to_enter))  # a child of a child
        assert prefork.report.locked()
    assert in_child(prefork.try_to_enter)
    assert prefork.try_to_enter()
    prefork.report.release()


def in_new_process(words: list[str]) -> str:
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "COV_"))}
    environ["PYTHONPATH"] = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    command = [sys.executable, *words]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120, env=environ)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("start", ["fork", "forkserver", "spawn"])
@pytest.mark.parametrize("how", ["threads", "asyncio", "sent"])
def test_a_pool_of_processes(start: str, how: str, tmp_path: Path) -> None:
    """Decorated functions of both APIs, and a gate that is an argument."""
    program = "import sys, pathlib; from tests.support import prefork;"
    program += " prefork.use_pool(sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3]))"
    assert in_new_process(["-c", program, start, how, str(tmp_path)]) == "60\n"


def test_a_gate_is_pickled_by_name() -> None:
    gate = sync.semaphore("gpu", 2)
    with gate.hold(n=2):
        again = pickle.loads(pickle.dumps(gate))
        assert (again.name, again.k) == ("gpu", 2)
        assert again.acquire(timeout=0) is None


XDIST = """
import pytest
from pathlib import Path
from tests.support import prefork

@pytest.mark.parametrize("number", range(40))
def test_alone(number):
    prefork.visit(Path({folder!r}))
    prefork.visit_in_loop(Path({folder!r}))
"""


def test_workers_of_pytest_xdist(tmp_path: Path) -> None:
    (tmp_path / "test_alone.py").write_text(XDIST.format(folder=str(tmp_path)))
    words = ["-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", "--rootdir", str(tmp_path)]
    words += ["--basetemp", str(tmp_path / "base")]
    assert "40 passed" in in_new_process([*words, str(tmp_path / "test_alone.py")])
