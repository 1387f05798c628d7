"""A permit that is garbage-collected while it is held causes a ResourceWarning; nothing else does."""

from __future__ import annotations

import asyncio
import gc
import os
import re
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from fairgate import sync
from fairgate.forgotten import Watch, watches
from tests.live.kinds import ROOM, Kind, each_place, of_kinds

ROOT = Path(__file__).parents[2]
WARNING = r"a permit for gate kept \(slot 0\) was garbage-collected while it was held, so its slot stays taken"
SOON = 20.0


@contextmanager
def warned(times: int) -> Iterator[None]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
        gc.collect()
    assert [one.category for one in caught] == [ResourceWarning] * times, [str(one.message) for one in caught]


def is_watched() -> bool:
    """Permits of other gates may belong to other tests."""
    return any(one.gate == "kept" for one in list(watches.values()))


def acquire_and_forget(peer: sync.Peer) -> None:
    """The gate remembers permits for its `release`, so it has to be forgotten too."""
    assert peer.lock("kept").acquire(SOON)


@each_place
def test_a_forgotten_permit_warns_and_keeps_its_slot(kind: Kind) -> None:
    with kind.sync_join() as peer:
        with pytest.warns(ResourceWarning, match=WARNING):
            acquire_and_forget(peer)
        assert peer.lock("kept").locked()
        assert not is_watched()


@each_place
def test_a_forgotten_permit_of_a_task_warns(kind: Kind) -> None:
    async def forget(peer: Any) -> None:
        assert await peer.lock("kept").acquire(SOON)

    async def main() -> None:
        async with kind.join() as peer:
            with warned(1):
                await asyncio.create_task(forget(peer))
            assert await peer.lock("kept").locked()

    asyncio.run(main())


def in_a_cycle(peer: sync.Peer) -> None:
    ring: list[object] = [peer.lock("kept").acquire(SOON)]
    ring.append(ring)


def in_a_thread(peer: sync.Peer) -> None:
    thread = threading.Thread(target=lambda: peer.lock("kept").acquire(SOON))
    thread.start()
    thread.join()


@of_kinds(ROOM)
@pytest.mark.parametrize("forget", [in_a_cycle, in_a_thread])
def test_a_permit_that_nobody_can_release_any_more_warns(kind: Kind, forget: Callable[[sync.Peer], None]) -> None:
    with kind.sync_join() as peer:
        gc.disable()  # else the warning might come early
        try:
            with warned(1):
                forget(peer)
        finally:
            gc.enable()


def released(gate: sync.Semaphore) -> None:
    permit = gate.hold(SOON)
    permit.release()
    assert not is_watched()  # else our code would run when it is collected, and a Ctrl-C in it would be lost
    with gate:
        pass
    gate.acquire(SOON)
    gate.release()


def expired(gate: sync.Semaphore) -> None:
    permit = gate.hold(SOON)
    permit.extend(0.001)
    assert permit.lost.wait(SOON)


def interrupted(gate: sync.Semaphore) -> None:
    with pytest.raises(KeyboardInterrupt), gate:
        raise KeyboardInterrupt


def suspended(gate: sync.Semaphore) -> None:
    def items() -> Iterator[int]:
        with gate:
            yield 1

    next(items())


@each_place
@pytest.mark.parametrize("use", [released, expired, interrupted, suspended])
def test_a_permit_that_has_ended_is_no_cause(kind: Kind, use: Callable[[sync.Semaphore], None]) -> None:
    with kind.sync_join() as peer, warned(0):
        use(peer.lock("kept"))
        assert not is_watched() or use is expired


@each_place
def test_closing_is_no_cause(kind: Kind) -> None:
    with warned(0):
        with kind.sync_join() as peer:
            permit = peer.lock("kept").acquire(SOON)
        assert permit is not None
        del permit


@each_place
def test_a_forked_child_does_not_answer_for_its_parent(kind: Kind) -> None:
    with kind.sync_join() as peer:
        permit = peer.lock("kept").hold(SOON)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                watched = is_watched()
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")
                    del permit
                    gc.collect()
                code = len(caught) + watched
            finally:
                os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
        permit.release()


AT_EXIT = """
from fairgate import sync
first = sync.join().lock("first").acquire()
peer = sync.join()
second = peer.lock("second").hold()
here = sync.lock("third").acquire()
"""


def test_the_end_of_a_program_is_no_cause(tmp_path: Path) -> None:
    environ = {**os.environ, "FAIRGATE_DIR": str(tmp_path)}
    words = [sys.executable, "-X", "dev", "-W", "always", "-c", AT_EXIT]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, env=environ, check=True)
    assert done.stderr == ""


ADVISERS = {"docs/python.md": (ROOT / "docs" / "python.md").read_text(), "Watch": str(Watch.__doc__)}


@pytest.mark.parametrize("adviser", ADVISERS)
def test_the_warning_shows_where_the_permit_was_acquired(adviser: str, tmp_path: Path) -> None:
    advised = re.findall(r"-X (tracemalloc[^ `]*)", ADVISERS[adviser])
    assert len(advised) == 1
    program = tmp_path / "program.py"
    program.write_text("from fairgate import sync\n\npeer = sync.join()\npeer.lock('kept').acquire()  # here\n")
    environ = {**os.environ, "FAIRGATE_DIR": str(tmp_path / "run")}
    words = [sys.executable, "-X", *advised, "-W", "always", str(program)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, env=environ, check=True)
    assert "ResourceWarning: a permit for gate kept (slot 0)" in done.stderr
    assert "acquire()  # here" in done.stderr.partition("Object allocated at")[2]
