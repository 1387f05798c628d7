"""Gates that nobody uses any more leave the roster, their peers and their hosts (live/resting.py)."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fairgate import sync
from fairgate.errors import GateClosed, KMismatch
from fairgate.live import guests as guests_module
from fairgate.live import resting
from fairgate.live.guests import Guests
from fairgate.live.keep_open import keep_open
from fairgate.live.resting import MOST_IDLE
from tests.live.commands import until
from tests.live.gates import SOON, live

LEASE = 2.0
MOST_OPEN = MOST_IDLE + 2  # the one in use, and one whose census is not over


@pytest.fixture
def keeper(tmp_path: Path) -> Iterator[sync.Peer]:
    tmp_path.chmod(0o700)
    with sync.join(listen=f"unix:{tmp_path}/0", lease=LEASE) as peer:
        yield peer


def address(peer: sync.Peer) -> str:
    return peer.engine.identity.address


def listed(peer: sync.Peer) -> set[str]:
    return {gate.name for gate in peer.engine.members.gates}


def use(peer: sync.Peer, first: int, last: int) -> None:
    for number in range(first, last):
        with peer.lock(f"name-{number}").hold(SOON):
            pass


def push_out(peer: sync.Peer) -> None:
    """Use so many other gates that all that are idle now rest."""
    use(peer, 0, 2 * MOST_IDLE)
    until(lambda: all(gate.seats for gate in peer.engine.gates.values()))


@contextmanager
def rising(peer: sync.Peer) -> Iterator[threading.Event]:
    """Until the end of the block, the peer only tries to give up the seats of gates that rest. Yields that event."""
    membership, tried, go = peer.engine.membership, threading.Event(), asyncio.Event()
    entered = membership.entered

    async def held() -> None:
        if not tried.is_set():
            tried.set()
            await go.wait()
        await entered()

    membership.entered = held  # type: ignore[method-assign]
    try:
        yield tried
    finally:
        membership.entered = entered  # type: ignore[method-assign]
        peer.engine.loop.call_soon_threadsafe(go.set)


def rest_now(gate: sync.Semaphore, tried: threading.Event) -> None:
    found = live(gate)
    engine = gate.gate.engine  # type: ignore[attr-defined]

    async def rest() -> None:
        with engine.step():
            engine.resting.rest(found)

    asyncio.run_coroutine_threadsafe(rest(), engine.loop).result()
    assert tried.wait(SOON)


# Which gates rest.


def test_the_roster_has_only_gates_that_are_in_use(keeper: sync.Peer) -> None:
    views = keeper.engine.membership.driver.views  # type: ignore[attr-defined]
    with keeper.lock("used").hold(SOON):
        use(keeper, 0, 3 * MOST_IDLE)
        until(lambda: len(listed(keeper)) <= MOST_OPEN)
        assert "used" in listed(keeper)
        assert f"name-{3 * MOST_IDLE - 1}" in listed(keeper)
        assert len(keeper.engine.gates) <= MOST_OPEN
        assert views.viewed.keys() <= listed(keeper)
    until(lambda: gc.collect() >= 0 and len(keeper.engine.resting.gates) <= 16)  # nothing refers to most others


def test_a_gate_that_was_not_used_for_a_while_rests(keeper: sync.Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resting, "IDLE_SECONDS", 0.1)
    with sync.join(address(keeper)) as peer:
        gate = peer.lock("report")
        with gate.hold(SOON) as permit:
            assert listed(keeper) == {"report"}
        until(lambda: not listed(keeper))
        with gate.hold(SOON) as later:
            assert (later.fence or 0) > (permit.fence or 0)
            assert (later.fence or 0) >> 32 > (permit.fence or 0) >> 32
        assert gate.statistics().entries == 2


def test_a_gate_that_is_kept_open_does_not_rest(keeper: sync.Peer) -> None:
    keep_open(keeper.engine, "gpu", 3, None)
    before = keeper.engine.members.gate("gpu")
    push_out(keeper)
    assert keeper.engine.members.gate("gpu") == before
    with pytest.raises(KMismatch, match="is open with k=3, not k=2"):
        keeper.semaphore("gpu", k=2)


def test_a_gate_that_others_use_stays(keeper: sync.Peer) -> None:
    with sync.join(address(keeper)) as other, other.lock("report").hold(SOON):
        gate = keeper.lock("report")
        assert gate.acquire(timeout=0.05) is None
        push_out(keeper)
        until(lambda: not live(gate).seats)
        record = keeper.engine.members.gate("report")
        assert record is not None
        assert record.hosts == ((other.engine.me, 1),)
        assert gate.acquire(timeout=0.05) is None


# A gate at rest.


def test_fences_rise_across_a_rest(keeper: sync.Peer) -> None:
    gate = keeper.lock("report")
    fences = []
    for _ in range(3):
        with gate.hold(SOON) as permit:
            fences.append(permit.fence or 0)
        push_out(keeper)
        assert "report" not in listed(keeper)
    assert fences == sorted(set(fences))


def test_a_gate_at_rest_that_is_opened_again_is_the_same(keeper: sync.Peer) -> None:
    gate = keeper.lock("report")
    with gate.hold(SOON):
        pass
    push_out(keeper)
    again = keeper.lock("report")
    assert live(again) is live(gate)
    with again.hold(SOON):
        assert gate.acquire(timeout=0.05) is None


def test_a_gate_at_rest_may_get_another_k(keeper: sync.Peer) -> None:
    gate = keeper.lock("report")
    with gate.hold(SOON):
        pass
    push_out(keeper)
    with sync.join(address(keeper)) as other, other.semaphore("report", k=2).hold(SOON):
        with pytest.raises(KMismatch, match="is open with k=2, not k=1"):
            gate.hold(SOON)
        with keeper.semaphore("report", k=2).hold(SOON):
            pass
    with pytest.raises(GateClosed, match="gate report was opened again, with k=2"):
        gate.hold(SOON)


# While its seats are given up.


def test_requests_wait_until_the_seats_are_given_up(keeper: sync.Peer) -> None:
    gate = keeper.lock("report")
    with gate.hold(SOON) as before:
        pass
    found: list[Any] = []
    with rising(keeper) as tried:
        rest_now(gate, tried)
        assert gate.acquire(timeout=0.05) is None  # given up before it has a seat
        threads = [threading.Thread(target=lambda: found.append(gate.hold(SOON))) for _ in range(2)]
        for thread in threads:
            thread.start()
        until(lambda: gate.statistics().waiting == 2)
        assert not found
    until(lambda: len(found) == 1)
    assert (found[0].fence or 0) > (before.fence or 0)
    found[0].release()
    for thread in threads:
        thread.join(SOON)
    assert (found[1].fence or 0) > (found[0].fence or 0)
    found[1].release()


def test_a_gate_can_be_closed_while_its_seats_are_given_up(keeper: sync.Peer) -> None:
    gate = keeper.lock("report")
    with gate.hold(SOON):
        pass
    refused: list[BaseException] = []

    def wait() -> None:
        try:
            gate.hold(SOON)
        except GateClosed as closed:
            refused.append(closed)

    with rising(keeper) as tried:
        rest_now(gate, tried)
        waiter = threading.Thread(target=wait)
        waiter.start()
        until(lambda: gate.statistics().waiting == 1)
        closer = threading.Thread(target=gate.close)
        closer.start()
        waiter.join(SOON)
    closer.join(SOON)
    assert len(refused) == 1
    until(lambda: not listed(keeper))
    with keeper.lock("report").hold(SOON):
        pass


def test_a_gate_can_be_kept_open_while_its_seats_are_given_up(keeper: sync.Peer) -> None:
    gate = keeper.lock("report")
    with gate.hold(SOON):
        pass
    with rising(keeper) as tried:
        rest_now(gate, tried)
        keeping = threading.Thread(target=keep_open, args=(keeper.engine, "report", 1, None))
        keeping.start()
        until(lambda: live(gate).pinned)
    keeping.join(SOON)
    until(lambda: live(gate).seats and live(gate).record.seats(keeper.engine.me))
    assert listed(keeper) == {"report"}
    with sync.join(address(keeper)) as other, other.lock("report").hold(SOON):
        assert gate.acquire(timeout=0.05) is None


def test_an_excluded_peer_takes_new_seats_instead_of_giving_them_up(keeper: sync.Peer) -> None:
    with sync.join(address(keeper)) as peer:
        gate = peer.lock("report")
        with gate.hold(SOON) as before:
            pass
        me = peer.engine.me
        found: list[Any] = []
        with rising(peer) as tried:
            rest_now(gate, tried)
            thread = threading.Thread(target=lambda: found.append(gate.hold(SOON)))
            thread.start()
            until(lambda: gate.statistics().waiting == 1)
            membership = peer.engine.membership
            peer.engine.loop.call_soon_threadsafe(membership.step, membership.excluded, "for a test")  # type: ignore[attr-defined]
            until(lambda: peer.engine.me != me)
            thread.join(SOON)
        until(lambda: keeper.engine.members.peer(me) is None)  # so later changes of this peer were made as well
        assert (found[0].fence or 0) > (before.fence or 0)
        assert found[0].valid
        assert keeper.lock("report").acquire(timeout=0.1) is None
        found[0].release()


# What names cost.


def largest_roster(peer: sync.Peer, first: int, last: int) -> int:
    """In bytes, while these names are used."""
    views, sizes = peer.engine.membership.driver.views, []  # type: ignore[attr-defined]
    for number in range(first, last):
        use(peer, number, number + 1)
        sizes.append(len(msgspec.msgpack.encode(views.value)))
    return max(sizes)


def test_rosters_do_not_grow_with_the_names_that_were_used(keeper: sync.Peer) -> None:
    """A roster travels as a whole, so this is what a name costs."""
    early = largest_roster(keeper, 0, 2 * MOST_IDLE)
    use(keeper, 2 * MOST_IDLE, 10 * MOST_IDLE)
    assert largest_roster(keeper, 10 * MOST_IDLE, 12 * MOST_IDLE) < 1.2 * early


def cost(peer: sync.Peer, first: int, last: int) -> float:
    """Processor time of a few names, at best. Once there were `MOST_IDLE`, rosters are about as large each time."""
    best = float("inf")
    for number in range(first, last, MOST_IDLE // 2):
        began = time.process_time()
        use(peer, number, number + MOST_IDLE // 2)
        best = min(best, time.process_time() - began)
    return best


@pytest.mark.stress
@pytest.mark.parametrize("peers", [1, 3])
def test_ten_thousand_names(peers: int, keeper: sync.Peer) -> None:
    others = [sync.join(address(keeper), standing=True) for _ in range(peers - 1)]
    use(keeper, 0, MOST_IDLE)
    early = cost(keeper, MOST_IDLE, 4 * MOST_IDLE)
    use(keeper, 4 * MOST_IDLE, 10_000)
    assert cost(keeper, 10_000, 10_000 + 3 * MOST_IDLE) < 1.5 * early
    assert len(keeper.engine.members.gates) <= MOST_OPEN
    for other in others:
        other.close()


# The rooms of guests.


def test_rooms_that_no_guest_uses_are_removed(
    keeper: sync.Peer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIRGATE_DIR", str(tmp_path / "host"))
    monkeypatch.setattr(guests_module, "TICK_SECONDS", 0.05)
    with Guests(keeper.engine, "fairgate") as guests, sync.join(address(keeper)) as guest:
        used = guest.lock("used")
        with used.hold(SOON) as before:
            for number in range(2 * MOST_IDLE):
                gate = guest.lock(f"name-{number}")
                with gate.hold(SOON):
                    pass
                gate.close()
            files = Path(guests.folder)
            until(lambda: len(list(files.glob("*.gate"))) <= MOST_IDLE + 1)
            until(lambda: len(guests.rooms) <= MOST_IDLE + 1)
            assert (files / "used.gate").exists()
        fresh = guest.lock("fresh")
        monkeypatch.setattr(guests_module, "IDLE_SECONDS", 0.1)
        until(lambda: {file.name for file in files.glob("*.gate")} == {"fresh.gate", "used.gate"})  # the guest's
        time.sleep(4 * guests_module.TICK_SECONDS)
        with fresh.hold(SOON):
            pass
        fresh.close()
        with used.hold(SOON) as later:
            assert (later.fence or 0) > (before.fence or 0)
        used.close()
        until(lambda: not list(files.glob("*.gate")))
        with guest.lock("used").hold(SOON) as again:
            assert (again.fence or 0) > (later.fence or 0)
        assert len(os.listdir(files)) < 10
