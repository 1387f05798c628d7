"""What type checkers know of the API: mypy checks this file (`make lint`), and its tests run as well.

An ignored error that is none any more is itself an error, so the lines with `type: ignore` show what is refused.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, assert_type, get_args

import pytest

import fairgate
from fairgate import sync
from fairgate.interface import TokenProtocol
from fairgate.live.live_protocols import live_protocols
from fairgate.net.tls import Tls
from fairgate.registry import find_protocol


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRGATE_DIR", str(tmp_path / "run"))


def test_the_slot_of_a_permit_is_an_int() -> None:
    with sync.join() as peer:
        gate = peer.semaphore("gpu", k=3)
        assert_type(gate, sync.Semaphore[int])
        with gate as permit:
            assert_type(permit.slot, int)
            assert_type(permit.fence, int)
            assert list(range(3))[permit.slot] == 0
        with peer.lock("report").hold(timeout=5) as permit:
            assert_type(permit, sync.Permit[int])
        tried = gate.acquire(timeout=0)
        assert_type(tried, sync.Permit[int] | None)
        assert tried is not None
        tried.release()


def test_the_slot_of_a_permit_is_an_int_in_asyncio() -> None:
    async def main() -> None:
        async with fairgate.join() as peer:
            gate = peer.semaphore("gpu", k=3)
            assert_type(gate, fairgate.Semaphore[int])
            async with gate as permit:
                assert_type(permit.slot, int)
            async with peer.lock("report").hold(timeout=5) as permit:
                assert_type(permit, fairgate.Permit[int])
                assert_type(permit.fence, int)

    asyncio.run(main())


def test_gates_that_are_opened_on_first_use_have_slots() -> None:
    assert_type(sync.lock("report"), sync.Semaphore[int])
    assert_type(sync.semaphore("gpu", 3), sync.Semaphore[int])
    assert_type(fairgate.lock("report"), fairgate.Semaphore[int])
    assert_type(fairgate.semaphore("gpu", 3), fairgate.Semaphore[int])


def slots_depend_on_the_protocol(peer: sync.Peer, tasks: fairgate.Peer, name: str) -> None:
    assert_type(peer.semaphore("gpu", 3, "fair_k"), sync.Semaphore[int])
    assert_type(peer.lock("report", "maekawa"), sync.Semaphore[int | None])
    assert_type(peer.lock("report", protocol=name), sync.Semaphore[int | None])
    assert_type(tasks.lock("report", "bv95"), fairgate.Semaphore[int])
    assert_type(tasks.semaphore("gpu", 3, "raymond"), fairgate.Semaphore[int | None])


def test_the_protocols_that_are_known_to_have_slots() -> None:
    assert set(get_args(TokenProtocol)) == {name for name in live_protocols() if find_protocol(name).about.slots}


def annotations_need_no_parameter(gate: sync.Semaphore, permit: fairgate.Permit) -> int | None:
    """As in programs that were written before there was one. Slots may then be missing."""
    assert_type(gate, sync.Semaphore[int | None])
    annotations_need_no_parameter(sync.lock("report"), permit)
    assert_type(permit.slot, int | None)
    return permit.slot


def join_has_typed_parameters(tls: Tls) -> None:
    assert_type(fairgate.join("web1:7400", tls=tls, cluster="lab", join_timeout=5), fairgate.api.Joining)
    assert_type(sync.join(listen="unix:/run/first", lease=3.0, standing=True), sync.Peer)
    sync.join(lease="3 s")  # type: ignore[arg-type]
    sync.join(tsl=tls)  # type: ignore[call-arg]
    fairgate.join(7400)  # type: ignore[arg-type]


def the_wrong_with_is_refused(gate: fairgate.Semaphore, other: sync.Semaphore) -> None:
    with gate:  # type: ignore[attr-defined]
        pass

    async def main() -> None:
        async with other:  # type: ignore[attr-defined]
            pass

    print(main)


@sync.lock("report")
def decorated(size: int) -> str:
    return str(size)


@fairgate.lock("report")
async def decorated_for_tasks(size: int) -> str:
    return str(size)


def decorators_keep_the_types() -> Any:
    assert_type(decorated(3), str)
    decorated("3")  # type: ignore[arg-type]
    return decorated_for_tasks("3")  # type: ignore[arg-type]
