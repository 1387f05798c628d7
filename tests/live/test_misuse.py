"""Objects of the API that are used in a way that cannot work say what would; and what they say of themselves."""

from __future__ import annotations

import asyncio
import copy
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import fairgate
from fairgate import sync
from fairgate.interface import BasePermit
from tests.live.kinds import GUESTS, ROOM, Kind, each_place, of_kinds


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRGATE_DIR", str(tmp_path / "run"))


def run(main: Callable[[], Any]) -> None:
    asyncio.run(asyncio.wait_for(main(), 20))


# The wrong kind of `with`.


def test_with_says_that_asyncio_needs_async_with() -> None:
    def enter(thing: Any) -> None:
        with pytest.raises(TypeError, match=r"is for asyncio: use `async with.*`, or fairgate\.sync"), thing:
            pass

    async def main() -> None:
        enter(fairgate.join())
        enter(fairgate.lock("report"))
        async with fairgate.join() as peer:
            enter(peer)
            gate = peer.lock("report")
            enter(gate)
            enter(gate.hold(timeout=5))
            async with gate as permit:
                enter(permit)
                assert permit.valid

    run(main)


def test_async_with_says_that_threads_need_with() -> None:
    async def enter(thing: Any) -> None:
        with pytest.raises(TypeError, match=r"is for threads: use `with`, or fairgate instead of fairgate\.sync"):
            async with thing:
                pass

    async def main() -> None:
        await enter(sync.lock("report"))
        with sync.join() as peer:
            await enter(peer)
            gate = peer.lock("report")
            await enter(gate)
            with gate as permit:
                await enter(permit)
                assert permit.valid

    run(main)


# Another process.

COPIES = (pickle.dumps, copy.copy, copy.deepcopy)


def refuse_copies(*things: object) -> None:
    for thing in things:
        for make in COPIES:
            with pytest.raises(TypeError, match=r"cannot pickle or copy <.*which belongs to this process: open it"):
                make(thing)


@each_place
def test_peers_gates_and_permits_are_not_copied(kind: Kind) -> None:
    async def main() -> None:
        joining = kind.join()
        refuse_copies(joining)
        async with joining as peer:
            gate = peer.lock("report")
            async with gate as permit:
                refuse_copies(peer, gate, gate.hold(), permit)
                assert permit.valid

    run(main)
    with kind.sync_join() as peer:
        gate = peer.lock("report")
        with gate as permit:
            refuse_copies(peer, gate, permit)
            assert permit.valid


@pytest.mark.parametrize(
    "error",
    [
        fairgate.KMismatch("gpu", 2, 3),
        fairgate.AcquireTimeout("timed out"),
        fairgate.PermitLost("lost"),
        fairgate.BadInput("wrong"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_come_back_from_pools_of_processes(error: Exception) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))


# What they say of themselves.

PEERS = {ROOM: "<peer of this host, ", GUESTS: "<guest of cluster fairgate on this host, "}


@each_place
def test_reprs_tell_name_k_and_state(kind: Kind) -> None:
    async def main() -> None:
        async with kind.join() as peer:
            gate = peer.semaphore("gpu", 2)
            async with gate as permit:
                said = repr(gate), repr(permit), repr(peer)
            assert repr(permit).endswith(", released>")
            lost = await gate.acquire()
            kind.lose(gate)
            assert repr(lost).endswith(", lost>")
        check(*said)
        assert repr(gate).endswith(", closed>")
        assert ", closed, " in repr(peer)

    def check(gate: str, permit: str, peer: str) -> None:
        assert gate.startswith("<gate gpu, k=2, ")
        assert gate.endswith(", open>")
        assert permit.startswith("<permit for gpu, slot ")
        assert permit.endswith(", valid>")
        assert peer.startswith(PEERS.get(kind.name, "<peer "))
        assert peer.endswith(", open, gates: 1>")

    run(main)
    with kind.sync_join() as peer:
        gate = peer.semaphore("gpu", 2)
        with gate as permit:
            check(repr(gate), repr(permit), repr(peer))
        assert repr(permit).endswith(", released>")
    assert repr(gate).endswith(", closed>")
    assert ", closed, " in repr(peer)


@of_kinds(GUESTS)
def test_the_repr_of_a_guests_gate_names_the_protocol_that_runs(kind: Kind) -> None:
    """The peer chooses it at the first request, and anew if nobody uses the gate and a request has another k."""
    with kind.sync_join() as peer:
        with peer.lock("gpu"):
            pass
        with kind.sync_join() as other:
            gate = other.semaphore("gpu", 2)
            assert repr(gate) == "<gate gpu, k=2, protocol not chosen yet, open>"
            with gate:
                assert repr(gate) == "<gate gpu, k=2, one_line, open>"

    async def main() -> None:
        async with kind.join() as peer:
            gate = peer.semaphore("gpu", 3)
            assert repr(gate) == "<gate gpu, k=3, protocol not chosen yet, open>"
            async with gate:
                assert repr(gate) == "<gate gpu, k=3, one_line, open>"

    run(main)


def test_a_permit_of_several_slots_shows_all() -> None:
    with sync.join() as peer, peer.semaphore("gpu", 3).hold(n=2) as permit:
        assert ", slot 0, 1, " in repr(permit)


@each_place
def test_permit_lost_tells_at_a_prompt_whether_it_was(kind: Kind) -> None:
    async def main() -> None:
        async with kind.join() as peer:
            gate = peer.semaphore("gpu", 1)
            permit = await gate.acquire()
            said.append(repr(permit.lost))
            kind.lose(gate)
            said.append(repr(permit.lost))

    said: list[str] = []
    run(main)
    with kind.sync_join() as peer:
        gate = peer.semaphore("gpu", 1)
        permit = gate.hold()
        said.append(repr(permit.lost))
        gate.close()
        said.append(repr(permit.lost))
    assert said == ["<lost: no>", "<lost: it was revoked>", "<lost: no>", "<lost: gate gpu was closed>"]


def ends_in_child(error: BaseException | None, ended: BaseException) -> int:
    """The exit code of a forked child whose body ended by `error`: 0 if `with` raised that, or else ForkedPeer."""
    if error is not None:
        return int(ended is not error)
    belongs = "this permit for gate report belongs to the parent process: acquire one in the child"
    return int(not isinstance(ended, fairgate.ForkedPeer) or str(ended) != belongs)


def fork_inside(permit: BasePermit[Any], error: BaseException | None) -> None:
    """The body of a `with`: the child raises this, and the parent waits for it."""
    child = os.fork()
    if child:
        assert os.waitpid(child, 0)[1] == 0
        assert permit.valid
    elif error is not None:
        raise error


ENDS = [SystemExit(0), KeyError("body"), None]


@each_place
@pytest.mark.parametrize("error", ENDS, ids=repr)
def test_the_bodys_exception_wins_in_a_forked_child(kind: Kind, error: BaseException | None) -> None:
    with kind.sync_join() as peer:
        parent = os.getpid()
        try:
            with peer.lock("report") as permit:
                fork_inside(permit, error)
        except BaseException as ended:
            if os.getpid() != parent:
                os._exit(ends_in_child(error, ended))
            raise
        if os.getpid() != parent:
            os._exit(2)


@each_place
@pytest.mark.parametrize("error", ENDS, ids=repr)
def test_the_bodys_exception_wins_in_a_child_forked_by_a_task(kind: Kind, error: BaseException | None) -> None:
    async def main() -> None:
        async with kind.join() as peer:
            parent = os.getpid()
            try:
                async with peer.lock("report") as permit:
                    fork_inside(permit, error)
            except BaseException as ended:
                if os.getpid() != parent:
                    os._exit(ends_in_child(error, ended))
                raise
            if os.getpid() != parent:
                os._exit(2)

    run(main)


@each_place
def test_reprs_in_a_forked_child(kind: Kind) -> None:
    with kind.sync_join() as peer:
        gate = peer.lock("report")
        with gate as permit:
            reader, writer = os.pipe()
            child = os.fork()
            if child == 0:
                try:
                    os.write(writer, f"{gate!r}\n{peer!r}\n{permit!r}\n{permit.lost!r}".encode())
                finally:
                    os._exit(0)
            os.close(writer)
            with os.fdopen(reader) as said:
                lines = said.read().splitlines()
            os.waitpid(child, 0)
            assert lines[0].endswith(", of the parent process>")
            assert ", of the parent process, " in lines[1]
            assert lines[2].startswith("<permit for report, slot 0, ")
            assert lines[2].endswith(", of the parent process>")
            assert lines[3] == "<lost: of the parent process>"
            assert permit.valid
