"""A request whose room is closed, or whose permit ends, before any one instruction of its acquisition.

Only what other threads could do at that moment is done there: a thread that makes a change keeps them from it.
"""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any

import pytest

from fairgate.errors import ForkedPeer, GateClosed
from fairgate.room.aio import AsyncRoom
from fairgate.room.bell import Bell, forking
from fairgate.room.permit import Permit
from fairgate.room.room import Room
from fairgate.room.words import ATOMIC
from tests.room.children import bells
from tests.room.files import gate

pytestmark = pytest.mark.skipif(ATOMIC, reason="compiled code has no instructions that can be seen")

NAMES = ("room", "desk", "permit", "calls", "bell", "rules", "aio", "backlog")
FILES = tuple([f"/fairgate/room/{name}.py" for name in NAMES])
CLOSED = "it is closed"
OTHERS = ("it is revoked", "its lease ends", "k is changed", "the process forks")
FEWEST, MOST = 100, 10_000  # instructions


class Pause:
    """Does something else before the instruction with this number, of those at which `room` is not being changed."""

    def __init__(self, room: Room, at: int, meanwhile: Callable[[], None]) -> None:
        self.mutex: Any = room.desk.mutex
        self.forking: Any = forking
        self.left = at
        self.is_over = False
        self.meanwhile = meanwhile

    def __enter__(self) -> Pause:
        sys._getframe().f_trace_opcodes = True  # else Python 3.12 reports no instructions the first time
        sys.settrace(self.on_call)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)

    def on_call(self, frame: FrameType, event: str, arg: object) -> Any:
        if not frame.f_code.co_filename.endswith(FILES):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return self.on_instruction

    def on_instruction(self, frame: FrameType, event: str, arg: object) -> Any:
        if event == "opcode" and not (self.is_over or self.mutex._is_owned() or self.forking._is_owned()):
            self.left -= 1
            if self.left == -1:
                self.meanwhile()
        return self.on_instruction


class Case:
    """One request of `room`, and what comes of it. `other` is another user of the gate."""

    def __init__(self, folder: str, act: str, at: int) -> None:
        self.other = Room(folder, "g", 1)
        self.room = Room(folder, "g", 1)
        self.lease = 0.001 if act == "its lease ends" else None
        self.act = act
        self.permit: Permit | None = None  # that its caller got
        self.taken: Permit | None = None  # that the other user got meanwhile
        self.pause = Pause(self.room, at, self.meanwhile)

    def meanwhile(self) -> None:
        if self.act == CLOSED:
            self.room.close()
        elif self.act == "it is revoked":
            self.other.revoke(0)
        elif self.act == "its lease ends":
            time.sleep(0.002)
        elif self.act == "k is changed":
            self.other.resize(2)
        elif self.act == "the process forks":
            self.fork()
        self.taken = self.other.acquire(timeout=0)

    def fork(self) -> None:
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                self.room.close()
                self.room.acquire()
            except ForkedPeer:
                code = 7
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7

    def make_way(self, held: Permit | None) -> None:
        """Release what the request waits for."""
        before, self.pause.is_over = self.pause.is_over, True  # the other user's instructions do not count
        for permit in (held, self.taken):
            if permit is not None:
                permit.release()
        self.taken = None
        self.pause.is_over = before

    def judge(self, held: Permit | None) -> None:
        permit, taken = self.permit, self.taken
        self.pause.is_over = True
        if held is not None:
            held.release()
        if taken is not None:
            assert taken.is_valid()
            if permit is not None:
                assert permit.fence != taken.fence
                assert not permit.is_valid() or set(permit.slots).isdisjoint(taken.slots)
                permit.release()
                assert taken.is_valid()
            taken.release()
        elif permit is not None:
            permit.release()
        self.other.resize(1)
        last = self.other.acquire(timeout=0)
        assert last is not None, "a slot stays taken"
        last.release()


def of_a_thread(case: Case, held: Permit | None, monkeypatch: pytest.MonkeyPatch) -> None:
    wait = Bell.wait

    def rung(bell: Bell, nanoseconds: int) -> tuple[list[int], set[int]]:
        case.make_way(held)
        return wait(bell, nanoseconds)

    monkeypatch.setattr(Bell, "wait", rung)
    with case.pause, suppress(GateClosed):
        case.permit = case.room.acquire(lease=case.lease)
    case.judge(held)


def of_a_task(case: Case, held: Permit | None, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        gate = AsyncRoom(case.room)
        with case.pause, suppress(GateClosed):
            task = asyncio.create_task(gate.acquire(lease=case.lease))
            while not (task.done() or gate.waiting):
                await asyncio.sleep(0)
            case.make_way(held)
            case.permit = await task
        case.judge(held)
        await gate.aclose()

    asyncio.run(main())


@pytest.mark.timeout(600)
@pytest.mark.parametrize("act", [CLOSED, *[pytest.param(act, marks=pytest.mark.stress) for act in OTHERS]])
@pytest.mark.parametrize("waits", [False, True], ids=["let in at once", "let in by another"])
@pytest.mark.parametrize("acquire", [of_a_thread, of_a_task])
def test_before_any_instruction(
    folder: str, acquire: Callable[..., None], waits: bool, act: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    gc.collect()
    descriptors = len(os.listdir("/proc/self/fd"))
    for at in range(MOST):
        case = Case(folder, act, at)
        acquire(case, case.other.acquire() if waits else None, monkeypatch)
        monkeypatch.undo()
        case.room.close()
        case.other.close()
        assert bells(folder) == []
        os.unlink(gate(folder))
        left = case.pause.left
        del case
        if left >= 0:
            break
    print(at, end=" ")
    assert FEWEST < at < MOST
    gc.collect()  # the mappings of files have descriptors too
    assert len(os.listdir("/proc/self/fd")) == descriptors
