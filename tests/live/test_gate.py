"""Gates of a cluster, with several peers in one process: views, fences, retaken permits, broken connections."""

from __future__ import annotations

import asyncio
import logging
import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import fairgate
from fairgate import sync
from fairgate.core.fences import FENCE_COUNT_BITS
from fairgate.errors import GateClosed, PermitLost
from fairgate.live import threads
from fairgate.live.gate import LiveGate
from fairgate.live.gate_checks import LATE
from fairgate.live.live_protocols import live_protocols
from fairgate.live.ticket import INSIDE, LOST, OVER, WAITING, Ticket
from fairgate.live.waiter import ThreadWaiter
from fairgate.net.reader import Waiting
from fairgate.net.transport import Transport
from tests.live.commands import until
from tests.live.gates import busy, live
from tests.live.kinds import Kind


def test_one_peer_can_hold_all_slots(cluster: Kind) -> None:
    async def main() -> None:
        async with cluster.join() as peer:
            gate = peer.semaphore("gpu", k=3)
            permits = [await gate.acquire(timeout=30) for _ in range(3)]
            assert sorted([permit.slot for permit in permits if permit is not None and permit.slot is not None]) == [
                0,
                1,
                2,
            ]
            assert await gate.locked()
            assert await gate.acquire(timeout=0) is None
            assert await gate.acquire(timeout=0.05) is None
            for permit in permits:
                assert permit is not None
                permit.release()
                permit.release()
            assert await gate.holders() == []
            async with gate as permit:
                assert permit.valid

    asyncio.run(main())


def test_a_thread_whose_gate_is_closed_as_it_is_granted_gets_no_permit(
    cluster: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    with cluster.sync_join() as peer, ThreadPoolExecutor(1) as pool:
        gate = peer.lock("report")
        permit = gate.hold(30)

        class ClosesAsItIsGranted(ThreadWaiter):
            def wait(self, what: Waiting, timeout: float | None) -> None:
                super().wait(what, timeout)
                gate.close()

        monkeypatch.setattr(threads, "ThreadWaiter", ClosesAsItIsGranted)
        asking = pool.submit(gate.acquire, 30)
        until(gate.waiters)
        permit.release()
        assert isinstance(asking.exception(30), GateClosed)


class Ending:
    """A request that is inside when it is looked at first, and has been lost when it is looked at again."""

    error = None
    why = "its gate was closed"

    def __init__(self) -> None:
        self.states = [INSIDE]

    @property
    def state(self) -> str:
        return self.states.pop() if self.states else LOST


def test_the_state_of_a_request_is_judged_by_one_look(cluster: Kind) -> None:
    """A request without a timeout that is closed as it is granted must not look as if it came too late."""
    with cluster.sync_join() as peer:
        gate: Any = peer.lock("report").gate
        assert gate.is_granted(Ending())


def break_in(gate: sync.Semaphore, peer: sync.Peer) -> None:
    engine = peer.engine
    (ident,) = engine.gates[gate.name].tickets
    engine.loop.call_soon_threadsafe(engine.break_in, gate.name, ident)


LOSSES: dict[str, Callable[[sync.Semaphore, sync.Peer], None]] = {
    "its gate is closed": lambda gate, peer: gate.close(),
    "its peer leaves": lambda gate, peer: peer.close(),
    "it is revoked": break_in,
}


class Looks(logging.Handler):
    """When a loss is logged, which may take long: is the permit valid, and is its seat still taken?"""

    def __init__(self, gate: sync.Semaphore) -> None:
        super().__init__()
        self.gate: Any = gate.gate
        self.permit = gate.hold(30)
        self.seen: list[tuple[bool, bool]] = []

    def emit(self, record: logging.LogRecord) -> None:
        if "was lost" in record.getMessage():
            self.seen.append((self.permit.valid, bool(self.gate.gate.tickets)))


@pytest.mark.parametrize("loss", LOSSES)
def test_a_permit_ends_before_its_slot_passes_on(cluster: Kind, loss: str) -> None:
    with cluster.sync_join() as peer:
        gate = peer.lock("report")
        looks = Looks(gate)
        log = logging.getLogger("fairgate.live")
        log.addHandler(looks)
        try:
            LOSSES[loss](gate, peer)
            until(lambda: looks.seen)
        finally:
            log.removeHandler(looks)
    assert looks.seen == [(False, True)]


def test_two_peers_take_turns(cluster: Kind) -> None:
    with cluster.sync_join() as one, cluster.sync_join() as two:
        first, second = one.lock("report"), two.lock("report")
        for _ in range(20):
            with first as permit:
                assert second.acquire(timeout=0.001) is None
                fence = permit.fence
                assert fence is not None
            with second as permit:
                assert permit.fence is not None
                assert permit.fence > fence


def test_another_k_is_refused(cluster: Kind) -> None:
    with cluster.sync_join() as one, cluster.sync_join() as two, one.semaphore("gpu", k=3):
        gate = two.semaphore("gpu", k=2)
        with pytest.raises(fairgate.KMismatch, match="is open with k=3, not k=2"):
            gate.acquire()


def test_a_broken_connection_between_living_peers_is_repaired(cluster: Kind) -> None:
    """Messages in flight are lost; a new view recovers from that."""
    with cluster.sync_join() as one, cluster.sync_join() as two, cluster.sync_join() as three:
        peers = (one, two, three)
        over = threading.Event()

        def contend(peer: sync.Peer) -> int:
            gate = peer.semaphore("gpu", k=2)
            entries = 0
            while not over.is_set():
                with gate.hold(timeout=30):
                    entries += 1
            return entries

        def cut(seed: int) -> None:
            chance = random.Random(seed)
            while not over.is_set():
                engine = chance.choice(peers).engine
                engine.loop.call_soon_threadsafe(drop_one, engine.transport, chance.random())
                time.sleep(0.02)

        with ThreadPoolExecutor() as pool:
            contenders = [pool.submit(contend, peer) for peer in peers]
            cutter = pool.submit(cut, 1)
            time.sleep(2.0)
            over.set()
            assert min([contender.result(60) for contender in contenders]) > 10
            cutter.result(60)


def drop_one(transport: Transport, chance: float) -> None:
    up = sorted(transport.up)
    if up:
        transport.up[up[int(chance * len(up))]].drop("a test cut it")


def test_a_later_peer_learns_of_changes_by_an_earlier_one(cluster: Kind) -> None:
    with cluster.sync_join() as early, cluster.sync_join() as late:
        with late.lock("report"):
            pass
        permit = early.lock("report").acquire(timeout=30)  # early has not heard of late yet
        assert permit is not None
        permit.release()


def test_fences_that_run_out_lead_to_a_new_view(cluster: Kind) -> None:
    """Also for retaken permits, which need no message."""
    with cluster.sync_join() as peer:
        gate = peer.lock("report")
        gate.hold(30).release()
        kept = live(gate).kept
        assert kept is not None
        view = live(gate).record.view
        kept.fence += LATE + 1
        kept.retakes += LATE + 1
        late = gate.hold(30)  # asks for another view
        late.release()
        end = time.monotonic() + 30
        while live(gate).record.view == view:
            assert time.monotonic() < end
            gate.hold(30).release()
        permit = gate.hold(30)
        assert permit.fence is not None
        assert view < permit.fence >> FENCE_COUNT_BITS <= live(gate).record.view  # another view may have come since


def test_a_view_whose_fences_run_out_is_replaced_once(cluster: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many enter until the next view."""
    with cluster.sync_join() as peer:
        asked: list[LiveGate] = []
        monkeypatch.setattr(peer.engine, "renew", asked.append)
        gate = peer.lock("report")
        gate.hold(30).release()
        kept = live(gate).kept
        assert kept is not None
        kept.fence += LATE + 1
        kept.retakes += LATE + 1
        for _ in range(5):
            gate.hold(30).release()
        assert asked == [live(gate)]


def test_the_engine_runs_while_a_thread_enters_without_a_pause(cluster: Kind) -> None:
    """It renews leases. Without pauses it would run a few times per second."""
    with cluster.sync_join() as peer:
        gate, loop = peer.lock("report"), peer.engine.loop
        gate.hold(30).release()
        ticks: list[float] = []

        def tick() -> None:
            ticks.append(time.monotonic())
            loop.call_later(0.005, tick)

        loop.call_soon_threadsafe(tick)
        end = time.process_time() + 1
        while time.process_time() < end:
            gate.hold(30).release()
        assert len(ticks) > 30


def test_leaving_and_asking_again_is_one_message(cluster: Kind) -> None:
    with cluster.sync_join() as one, cluster.sync_join() as two, ThreadPoolExecutor() as pool:
        here, there = one.lock("report", "bv95"), two.lock("report", "bv95")
        here.hold(30)
        gate = live(here)
        (old,) = gate.tickets.values()
        waiting = pool.submit(there.hold, 30)
        wait_until(lambda: not gate.nodes[old.ident].alone())
        new, sent = Ticket(), gate.counts.sent
        one.engine.of_user(gate, lambda ticket: gate.again(old, ticket), new)
        assert (old.state, new.state, new.ident) == (OVER, WAITING, old.ident)
        assert gate.counts.sent == sent + 1
        permit = waiting.result(30)
        permit.release()
        wait_until(lambda: new.state == INSIDE)
        assert permit.fence is not None
        assert new.fence == permit.fence + 1
        one.engine.release(gate, new)


def test_leaving_and_asking_again_while_nobody_waits(cluster: Kind) -> None:
    with cluster.sync_join() as peer:
        lock = peer.lock("report")
        lock.hold(30)
        gate = live(lock)
        (old,) = gate.tickets.values()
        new = Ticket()
        peer.engine.of_user(gate, lambda ticket: gate.again(old, ticket), new)
        assert (old.state, new.state) == (OVER, INSIDE)
        gate.close("a test closes it")
        with pytest.raises(GateClosed):
            peer.engine.of_user(gate, lambda ticket: gate.again(new, ticket), Ticket())


def wait_until(what: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not what():
        assert time.monotonic() < end
        time.sleep(0.001)


def test_fences_rise_across_retaken_permits(cluster: Kind) -> None:
    with cluster.sync_join() as one, cluster.sync_join() as two:
        here, there = one.lock("report"), two.lock("report")
        for _ in range(3):
            fences = []
            for gate in (here, here, here, there, there):
                with gate.hold(30) as permit:
                    fences.append(permit.fence or 0)
            assert fences == sorted(set(fences))


def test_a_permit_is_lost_at_its_deadline_before_the_engine_notices(cluster: Kind) -> None:
    with cluster.sync_join() as peer:
        gate = peer.lock("report")
        gate.hold(30).release()
        with busy(peer):  # its loop would report the loss
            permit = gate.hold(30, lease=0.02)
            end = time.monotonic() + 30
            while permit.valid:
                assert time.monotonic() < end
            assert permit.lost
            with pytest.raises(PermitLost, match="lease has expired"):
                permit.check()
            with pytest.raises(PermitLost, match="lease has expired"):
                permit.extend(30)
            permit.release()
            assert permit.lost
        assert gate.statistics().permits_lost == 1


@pytest.mark.parametrize("protocol", live_protocols())
def test_entering_alone_makes_no_new_view(cluster: Kind, protocol: str) -> None:
    """Not even for protocols without fences, which cannot run out."""
    with cluster.sync_join() as one, cluster.sync_join() as two:
        first, second = one.lock("report", protocol), two.lock("report", protocol)
        first.hold(30).release()
        second.hold(30).release()
        views = first.statistics().views
        for _ in range(5):
            first.hold(30).release()
            second.hold(30).release()
        second.holders()  # reads the roster, so that any change is known afterwards
        assert first.statistics().views == views
