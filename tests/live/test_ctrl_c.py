"""Ctrl-C in the middle of acquire and release: a process that carries on leaves no gate blocked."""

from __future__ import annotations

import asyncio
import logging
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import FrameType
from typing import Self

import pytest

from fairgate import sync
from fairgate.live.gate import RETAKES
from fairgate.net.pipe import Pipe
from tests.live.gates import SOON, all_are_free_now, live
from tests.live.kinds import Kind
from tests.support.latches import is_locked


class Unconnected(Pipe):
    def wait_for_room(self) -> None:
        raise AssertionError

    def frame_begun(self) -> None:
        raise AssertionError

    def drop(self, why: str, level: int = logging.DEBUG) -> None:
        raise AssertionError


def test_a_signal_at_any_moment_leaves_no_lock_held() -> None:
    """The lock of a connection. In plain Python the signal may be handled after any call."""

    async def main() -> None:
        pipe = Unconnected(None, 100)
        for _ in range(100):
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.0005)
                while True:
                    pipe.write_now(b"")  # not connected, so this only takes the lock
            except KeyboardInterrupt:
                assert not is_locked(pipe.writing)

    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        asyncio.run(main())
    finally:
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("seconds", [2.0, pytest.param(60.0, marks=pytest.mark.stress)])
def test_ctrl_c_again_and_again(cluster: Kind, seconds: float) -> None:
    rng = random.Random(1)
    command = [sys.executable, "-m", "tests.live.interrupted", str(seconds), *cluster.seeds]
    other = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert other.stdout is not None
    try:
        assert other.stdout.readline() == b"ready\n"
        with cluster.sync_join() as peer:
            gate = peer.semaphore("gate", 2)
            stopping = threading.Event()
            entries: list[int] = []

            def visit() -> None:
                while not stopping.is_set():
                    gate.hold(SOON).release()
                    entries.append(1)
                    time.sleep(0.001)

            thread = threading.Thread(target=visit)
            thread.start()
            deadline = time.monotonic() + seconds - 0.5
            while time.monotonic() < deadline:
                time.sleep(rng.uniform(0.004, 0.02))
                other.send_signal(signal.SIGINT)
            told = other.stdout.readline().split()
            stopping.set()
            thread.join(2 * SOON)
            assert len(told) == 2, other.poll()
            print(f"{told[0].decode()} visits, {told[1].decode()} interrupted; {len(entries)} visits of the other")
            assert int(told[1]) > 10
            assert entries
            all_are_free_now(gate)
    finally:
        other.kill()
        other.communicate()


class Interrupt:
    """Raises Ctrl-C at the start of the n-th function called, one of the places where Python handles signals."""

    # When compiled, other files cannot be interrupted.
    FILES = ("sync.py", "threads.py", "cluster_permit.py", "engine.py", "gate.py")

    def __init__(self, at: int) -> None:
        self.left = at

    def __call__(self, frame: FrameType, event: str, arg: object) -> None:
        if Path(frame.f_code.co_filename).name in self.FILES:
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt

    def __enter__(self) -> Self:
        sys.settrace(self)
        return self

    def __exit__(self, *how: object) -> None:
        sys.settrace(None)


def visit(gate: sync.Semaphore, at: int, lease: float | None) -> bool:
    """False if the visit ended before the interrupt."""
    permit = None
    try:
        with Interrupt(at):
            permit = gate.acquire(SOON, lease=lease)
            assert permit is not None
            permit.release()
    except KeyboardInterrupt:
        if permit is not None:
            permit.release()  # the first call may not have started
        return True
    return False


@pytest.mark.parametrize("lease", [None, SOON])  # a lease disables retaking
def test_ctrl_c_at_the_start_of_every_function(cluster: Kind, lease: float | None) -> None:
    with cluster.sync_join() as one, cluster.sync_join() as two:
        here, there = one.lock("gate"), two.lock("gate")
        at = 0
        while True:
            at += 1
            there.hold(SOON).release()
            while (
                live(here).kept is None or live(here).retakes != RETAKES - 1
            ):  # so that the next entry reads what has arrived
                here.hold(SOON).release()
            interrupted = visit(here, at, lease)
            assert here.requests() == []
            if not interrupted:
                break
        all_are_free_now(here, there)
    assert at > 4  # more in plain Python


def test_ctrl_c_while_waiting(cluster: Kind) -> None:
    with cluster.sync_join() as one, cluster.sync_join() as two:
        gate = one.lock("gate")
        with two.lock("gate").hold(SOON):
            main = threading.get_ident()

            def interrupt() -> None:
                reader = one.engine.transport.reader
                while reader is None or reader.user != main:
                    time.sleep(0.001)
                os.kill(os.getpid(), signal.SIGINT)

            thread = threading.Thread(target=interrupt)
            thread.start()
            with pytest.raises(KeyboardInterrupt):
                gate.acquire(SOON)
            thread.join(SOON)
            assert gate.waiters() == []
        all_are_free_now(gate)
