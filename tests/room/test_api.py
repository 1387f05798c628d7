"""Both APIs on the waiting rooms of one host. What every kind of gate does is in tests/live/test_generic.py."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import fairgate
from fairgate import BadInput, GateClosed, KMismatch, PermitLost, sync
from fairgate.room.aio import AsyncRoom
from fairgate.room.room import Room

SOON = 20.0


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FAIRGATE_DIR", str(tmp_path / "run"))
    return tmp_path / "run"


def run(main: Callable[[], Any]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(SOON):
            await main()

    asyncio.run(bounded())


# Trying, as threading.Lock does.


def test_a_timeout_of_zero_tries() -> None:
    with sync.join() as peer:
        gate = peer.lock("report")
        permit = gate.acquire(timeout=0)
        assert permit is not None
        assert gate.acquire(timeout=0) is None
        assert gate.acquire(False) is None
        assert gate.locked()
        gate.release()
        assert not permit.valid
        assert gate.acquire(True) is not None
        gate.release()
        with pytest.raises(BadInput, match="there is no permit of gate report to release"):
            gate.release()
        assert not gate.locked()


def test_a_holder_whose_lease_is_over_is_not_shown_as_one() -> None:
    """Nobody needed its slot yet, so the file still has it."""
    with sync.join() as peer:
        gate = peer.lock("report")
        permit = gate.acquire(lease=0.02)
        assert permit is not None
        assert gate.locked()
        while permit.valid:
            time.sleep(0.005)
        assert gate.holders() == []
        assert not gate.locked()
        assert gate.statistics().inside == 0
        assert gate.acquire(timeout=0) is not None


def test_a_timeout_of_zero_tries_in_asyncio() -> None:
    async def main() -> None:
        async with fairgate.join() as peer:
            gate = peer.lock("report")
            assert await gate.acquire(timeout=0)
            assert await gate.acquire(timeout=0) is None
            gate.release()
            with pytest.raises(BadInput, match="there is no permit of gate report to release"):
                gate.release()
            assert await gate.acquire(timeout=0)

    run(main)


def test_release_gives_back_the_latest_permit_that_is_still_held() -> None:
    with sync.join() as peer:
        gate = peer.semaphore("gpu", 3)
        permits = [gate.hold(0) for _ in range(3)]
        permits[2].release()
        gate.release()
        assert [permit.valid for permit in permits] == [True, False, False]


def test_a_thread_does_not_remember_permits_that_it_released() -> None:
    with sync.join() as peer:
        gate = peer.semaphore("gpu", 2)
        before = gate.hold()
        for _ in range(100):  # hand over hand
            after = gate.hold()
            before.release()
            before = after
        assert len(gate.permits.acquired.permits) < 20
        gate.release()
        assert not before.valid


def test_decorators() -> None:
    async def main() -> None:
        async with fairgate.join() as peer:
            gate = peer.lock("report")

            @gate
            async def write(text: str) -> bool:
                assert await gate.locked()
                return text == "x"

            assert await write("x")
            assert write.__name__ == "write"
            with pytest.raises(BadInput, match="is not an async def"):
                gate(lambda: None)  # type: ignore[arg-type, return-value]
            assert not await gate.locked()

    run(main)
    with sync.join() as peer:
        gate = peer.lock("report")

        @gate
        def write(text: str) -> bool:
            return gate.locked() and text == "x"

        assert write("x")
        assert not gate.locked()

        async def later() -> None: ...

        def items() -> Iterator[int]:
            yield 1

        for function in (later, items):
            with pytest.raises(BadInput, match="its body would run outside"):
                gate(function)


def test_a_permit_is_for_one_body() -> None:
    """The first of two bodies to end would release it, and the other one would go on outside."""

    async def main() -> None:
        async with fairgate.join() as peer:
            permit = await peer.lock("report").acquire()
            assert permit is not None
            async with permit:
                with pytest.raises(BadInput, match="this permit for gate report is in use by a `with` block already"):
                    await permit.__aenter__()
                assert permit.valid

    run(main)
    with sync.join() as peer:
        gate = peer.lock("report")
        for enter in (lambda: gate, gate.hold):
            with enter() as permit:
                with pytest.raises(BadInput, match="this permit for gate report is in use by a `with` block already"):
                    permit.__enter__()
                assert permit.valid


def test_tasks_can_share_what_hold_returns() -> None:
    async def main() -> None:
        async with fairgate.join() as peer:
            gate = peer.semaphore("gpu", k=2)
            hold = gate.hold(timeout=5)
            both = asyncio.Barrier(2)

            async def visit() -> None:
                async with hold:
                    await both.wait()
                    assert await gate.locked()
                    await both.wait()

            await asyncio.gather(visit(), visit())
            assert await gate.holders() == []

    run(main)


# Several slots at once.


def test_several_slots_at_once() -> None:
    with sync.join() as peer:
        gate = peer.semaphore("gpu", 3)
        one, two = gate.hold(0), gate.hold(0, n=2)
        assert (one.slots, two.slots, two.slot) == ((0,), (1, 2), 1)
        assert gate.locked()
        one.release()
        assert not gate.locked()
        assert gate.acquire(0, n=2) is None
        two.release()
        with pytest.raises(BadInput, match="cannot acquire 4 slots of gate gpu: its k is 3"):
            gate.acquire(n=4)
        for wrong in (0, -1, 1.5, "2"):
            with pytest.raises(BadInput, match="n must be a whole number of permits"):
                gate.acquire(n=wrong)  # type: ignore[arg-type]


def test_a_request_for_several_slots_is_not_overtaken() -> None:
    async def main() -> None:
        async with fairgate.join() as peer:
            gate = peer.semaphore("gpu", 2)
            first = await gate.acquire()
            assert first is not None
            both = asyncio.create_task(gate.acquire(n=2))
            while len(await gate.waiters()) < 1:
                await asyncio.sleep(0.001)
            assert await gate.acquire(timeout=0) is None  # although a slot is free
            first.release()
            permit = await both
            assert permit is not None
            assert permit.slots == (0, 1)

    run(main)


# Changing k.


def test_resize() -> None:
    with sync.join() as one, sync.join() as two:
        here, there = one.semaphore("gpu", 2), two.semaphore("gpu", 2)
        permits = [here.hold(0), there.hold(0)]
        there.resize(3)
        assert (here.k, there.k) == (3, 3)
        permits.append(here.hold(0))  # programs that still ask for k=2 go on
        with pytest.raises(KMismatch, match="gate gpu is open with k=3, not k=4"):
            one.semaphore("gpu", 4)
        assert permits[2].slot == 2
        here.resize(1)
        permits[0].release()
        permits[1].release()
        assert here.acquire(0) is None  # one is still inside
        permits[2].release()
        here.hold(0).release()
        assert here.k == 2  # an unused gate takes the k of its next user
        with pytest.raises(BadInput, match="k must be a whole number from 1 to 1000, not 0"):
            here.resize(0)

    async def main() -> None:
        async with fairgate.join() as peer:
            gate = peer.semaphore("gpu", 1)
            await gate.resize(2)
            assert gate.k == 2

    run(main)


def test_another_k_is_refused_while_the_gate_is_in_use() -> None:
    with sync.join() as one, sync.join() as two:
        gate = one.semaphore("gpu", 3)
        with pytest.raises(KMismatch, match="gate gpu is open with k=3, not k=4"):
            one.semaphore("gpu", 4)  # in one process never
        with gate, pytest.raises(KMismatch, match="gate gpu is open with k=3, not k=4"):
            two.semaphore("gpu", 4)
        with two.semaphore("gpu", 4), pytest.raises(KMismatch, match="gate gpu is open with k=4, not k=3"):
            gate.acquire(0)
        gate.hold(0).release()  # an unused gate takes a new k
        assert gate.k == 3


# Gates.


def test_a_gate_may_be_named_by_a_path(tmp_path: Path) -> None:
    path = tmp_path / "my.gate"
    with sync.join() as peer, peer.lock(str(path)) as permit:
        assert path.is_file()
        assert permit.slot == 0


@pytest.mark.parametrize("api", ["asyncio", "sync"])
def test_protocols_and_journals_are_for_clusters(api: str) -> None:
    if api == "sync":
        with pytest.raises(BadInput, match="journals are for clusters"):
            sync.join(journal="x")
        with sync.join() as peer, pytest.raises(BadInput, match="gate gpu: protocol 'fair_k' is for clusters"):
            peer.semaphore("gpu", 3, "fair_k")
        return

    async def main() -> None:
        with pytest.raises(BadInput, match="journals are for clusters"):
            await fairgate.join(journal="x")
        async with fairgate.join() as peer:
            with pytest.raises(BadInput, match="gate gpu: protocol 'fair_k' is for clusters"):
                peer.semaphore("gpu", 3, "fair_k")

    run(main)


def test_a_refused_request_leaves_the_gate_as_it_was(folder: Path) -> None:
    with sync.join() as peer:
        gate = peer.semaphore("gpu", 2)
        for _ in range(3):
            with gate:
                pass
            with pytest.raises(BadInput, match="cannot acquire 3 slots"):
                gate.acquire(n=3)
            with Room(str(folder), "gpu") as room:
                assert room.requests() == []


def test_a_gate_whose_file_was_removed_can_be_opened_again(folder: Path) -> None:
    with sync.join() as peer:
        gate = peer.lock("report")
        gate.hold(0).release()
        (folder / "report.gate").unlink()
        again = peer.lock("report")
        again.hold(0).release()
        assert (folder / "report.gate").exists()


# Losses.


def test_permits_whose_lease_ends_count_as_lost() -> None:
    with sync.join() as peer:
        gate = peer.lock("report")
        permit = gate.hold(lease=0.01)
        assert permit.lost.wait(SOON)
        permit.release()
        assert gate.statistics().permits_lost == 1


def test_a_child_cannot_check_its_parents_permit() -> None:
    with sync.join() as peer, peer.lock("report") as permit:
        child = os.fork()
        if child == 0:
            try:
                permit.check()
            except fairgate.ForkedPeer:
                os._exit(0)
            os._exit(1)
        assert os.waitpid(child, 0)[1] == 0


def test_a_revoked_permit_cancels_its_body(folder: Path) -> None:
    async def main() -> None:
        async with fairgate.join() as peer:
            gate = peer.lock("report")

            async def revoked() -> None:
                async with gate:
                    room.revoke(0)
                    await asyncio.sleep(SOON)

            with Room(str(folder), "report") as room, pytest.raises(PermitLost, match="it was revoked"):
                await revoked()
            permit = await gate.acquire()
            assert permit is not None
            with Room(str(folder), "report") as room:
                waits = asyncio.create_task(permit.lost.wait())
                await asyncio.sleep(0)
                room.revoke(0)
                assert await waits == "it was revoked"
            permit.release()
            assert permit.lost

    run(main)


def test_waiting_for_a_loss_ends_when_the_permit_is_released() -> None:
    with sync.join() as peer:
        permit = peer.lock("report").hold()
        thread = threading.Timer(0.05, permit.release)
        thread.start()
        assert not permit.lost.wait(SOON)
        thread.join()

    async def main() -> None:
        async with fairgate.join() as peer:
            permit = await peer.lock("report").acquire()
            assert permit is not None
            waits = asyncio.create_task(permit.lost.wait())
            await asyncio.sleep(0)
            permit.release()
            assert await waits == ""

    run(main)


def test_a_shortened_lease_ends_the_body_early() -> None:
    async def main() -> None:
        async with fairgate.join() as peer:
            gate = peer.lock("report")
            began = time.monotonic()

            async def shortened() -> None:
                async with gate.hold(lease=SOON) as permit:
                    permit.extend(0.05)
                    await asyncio.sleep(SOON)

            with pytest.raises(PermitLost, match="its lease has expired"):
                await shortened()
            assert time.monotonic() - began < SOON / 2

    run(main)


# The end of a program.

ENDS = {
    "holding": "permit = gate.acquire()",
    "waiting": (
        "import threading\ngate.acquire()\nthreading.Thread(target=gate.acquire, daemon=True).start()\n"
        "while not gate.waiters(): pass"
    ),
    "by an error": "gate.acquire(); raise SystemExit(0)",
}


@pytest.mark.parametrize("how", ENDS)
def test_a_program_that_ends_without_closing_prints_nothing_and_leaves_nothing(how: str, folder: Path) -> None:
    program = f"from fairgate import sync\npeer = sync.join()\ngate = peer.lock('report')\n{ENDS[how]}\n"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=SOON, check=True)
    assert (done.stdout, done.stderr) == ("", "")
    with sync.join() as peer:
        gate = peer.lock("report")
        assert gate.requests() == []
        assert gate.acquire(0)
    assert [file for file in os.listdir(folder) if file.endswith(".bell")] == []


ASYNC_ENDS = {
    "holding": "await gate.acquire()",
    "waiting": "await gate.acquire(); asyncio.create_task(gate.acquire()); await asyncio.sleep(0.1)",
}


@pytest.mark.parametrize("how", ASYNC_ENDS)
def test_a_task_that_ends_without_closing_prints_nothing_and_leaves_nothing(how: str, folder: Path) -> None:
    program = (
        "import asyncio, fairgate\nasync def main():\n    peer = await fairgate.join()\n"
        f"    gate = peer.lock('report')\n    {ASYNC_ENDS[how]}\nasyncio.run(main())\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=SOON, check=True)
    assert (done.stdout, done.stderr) == ("", "")
    with sync.join() as peer:
        gate = peer.lock("report")
        assert gate.requests() == []
    assert [file for file in os.listdir(folder) if file.endswith(".bell")] == []


# Opening a gate while it is closed.


def test_a_gate_that_is_closed_at_the_same_moment_is_opened_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another thread closes it just after this one has found it open, and before it asks for its file."""
    is_closed = Room.is_closed
    with sync.join() as peer:
        first = peer.lock("report")

        def looked_too_early(room: Room) -> bool:
            monkeypatch.setattr(Room, "is_closed", is_closed)
            closing = threading.Thread(target=first.close)
            closing.start()
            closing.join()
            return False

        monkeypatch.setattr(Room, "is_closed", looked_too_early)
        second = peer.lock("report")
        with second:
            assert second.locked()


def test_no_gate_is_opened_while_the_peer_is_closing() -> None:
    """Other tasks run while its gates are closed one by one."""

    async def main() -> None:
        peer = await fairgate.join()
        gate = peer.lock("report")
        other = peer.lock("other")
        await gate.acquire()
        refused: list[str] = []
        aclose = AsyncRoom.aclose

        async def aclose_later(self: AsyncRoom, why: str) -> None:
            for name in ("report", "new"):
                with pytest.raises(GateClosed) as wrong:
                    peer.lock(name)
                refused.append(str(wrong.value))
            await aclose(self, why)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(AsyncRoom, "aclose", aclose_later)
            await peer.close()
        assert refused == ["this peer has left"] * 2
        with pytest.raises(GateClosed):
            await other.acquire()

    run(main)


@pytest.mark.parametrize("later", [False, True])
def test_a_gate_and_its_peer_can_be_closed_at_the_same_moment(later: bool) -> None:
    """The thread that is second finds nothing to do, whether the file is open when it comes or closed already."""
    peer = sync.join()
    gate = peer.lock("report")
    assert gate.acquire() is not None
    room = gate.gate.room  # type: ignore[attr-defined]
    change = room.change
    wrong: list[BaseException] = []

    def close_gate() -> None:
        try:
            gate.close()
        except BaseException as error:
            wrong.append(error)

    def changes(step: Any) -> None:
        """Of the second thread, once it has found the file open."""
        found_open.set()
        closed.wait(SOON if later else 0)
        change(step)

    def close_peer(step: Any) -> None:
        change(step)
        room.change = changes
        closing.start()
        assert found_open.wait(SOON)
        if not later:
            closing.join()

    found_open, closed = threading.Event(), threading.Event()
    closing = threading.Thread(target=close_gate)
    room.change = close_peer
    peer.close()
    closed.set()
    closing.join(SOON)
    assert not closing.is_alive()
    assert wrong == []
