"""What every live gate does: one suite over all protocols that can run live, and both APIs."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import random
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

import fairgate
from fairgate import sync
from fairgate.live.live_protocols import default_protocol
from tests.live.gates import SOON, all_are_free, all_are_free_now, ends_with, run, take, until
from tests.live.kinds import ROOM, Kind, each_kind, each_place

TRIES = 100


# Acquiring and releasing.


@each_kind
def test_acquire_and_release(kind: Kind) -> None:
    k = kind.k

    async def main() -> None:
        async with kind.join() as one, kind.join() as two:
            here, there = one.semaphore("gpu", k, kind.protocol), two.semaphore("gpu", k, kind.protocol)
            permits = [await take(gate, note="n") for gate in [here, there, here][:k]]
            assert await here.locked()
            assert await there.acquire(timeout=0) is None
            assert await there.acquire(timeout=0.01) is None
            assert [one.inside for one in await here.requests()] == [True] * k
            assert [one.note for one in await there.holders()] == ["n"] * k
            slots = [permit.slot for permit in permits]
            assert set(slots) == (set(range(k)) if kind.has_slots else {None})
            late = asyncio.create_task(take(there))
            await until(lambda: has_waiters(here, 1))
            for _ in range(2):
                permits[0].release()  # the second release is a no-op
            assert not permits[0].valid
            with pytest.raises(fairgate.PermitLost, match="was released"):
                permits[0].check()
            permit = await late
            assert permit.valid
            if kind.has_slots:
                assert permit.slot == slots[0]
                assert permit.fence is not None
                assert permits[0].fence is not None
                assert permit.fence > permits[0].fence
            assert not await here.waiters()
            for each in [permit, *permits]:
                each.release()
            async with there as permit, asyncio.timeout(SOON):
                assert permit.valid
            assert not await here.locked()
            tried = await here.acquire(timeout=0)
            assert tried is not None
            tried.release()
            await all_are_free(here, there)

    run(main())


async def has_waiters(gate: fairgate.Semaphore, count: int) -> bool:
    return len(await gate.waiters()) == count


@each_kind
def test_acquire_and_release_in_threads(kind: Kind) -> None:
    k = kind.k
    with kind.sync_join() as one, kind.sync_join() as two:
        here, there = one.semaphore("gpu", k, kind.protocol), two.semaphore("gpu", k, kind.protocol)
        permits = [gate.hold(SOON) for gate in [here, there, here][:k]]
        assert here.locked()
        assert there.acquire(timeout=0) is None
        assert there.acquire(timeout=0.01) is None
        assert there.acquire(timeout=0) is None
        with pytest.raises(fairgate.AcquireTimeout, match=r"\(0\.01 s\)"):
            there.hold(timeout=0.01)
        got: list[sync.Permit] = []
        thread = threading.Thread(target=lambda: got.append(there.hold(SOON)))
        thread.start()
        while len(here.waiters()) != 1:
            pass
        permits[0].release()
        permits[0].release()
        thread.join(SOON)
        assert got[0].valid
        for permit in [*got, *permits]:
            permit.release()
        with pytest.raises(KeyError), there:
            raise KeyError
        all_are_free_now(here, there)


@each_place
def test_statistics_are_frozen_and_correct(kind: Kind) -> None:
    async def main() -> None:
        async with kind.join() as peer:
            gate = peer.semaphore("gpu", 2)
            permits = await asyncio.gather(take(gate), take(gate))
            assert await gate.acquire(timeout=0.01) is None
            waiting = asyncio.create_task(take(gate))
            await until(lambda: has_waiters(gate, 1))
            now = gate.statistics()
            told = ("room", "host") if kind.name == ROOM else (default_protocol(2), "lease")
            assert (now.gate, now.k, now.protocol, now.guarantee) == ("gpu", 2, *told)
            assert (now.entries, now.inside, now.waiting, now.permits_lost) == (2, 2, 1, 0)
            with pytest.raises(dataclasses.FrozenInstanceError):
                now.entries = 3
            permits[0].release()
            (await waiting).release()
            permits[1].release()
            after = gate.statistics()
            assert (after.entries, after.inside, after.waiting) == (3, 0, 0)
            assert after.wait_max >= after.wait_mean > 0
            assert now.entries == 2

    run(main())


# Abandoned requests.


@each_kind
def test_a_hundred_cancels_and_timeouts_leak_nothing(kind: Kind) -> None:
    k, rng = kind.most, random.Random(kind.name)
    entries = 0

    async def visit(gate: fairgate.Semaphore) -> None:
        nonlocal entries
        how = rng.randrange(3)
        if how == 0:
            permit = await gate.acquire(timeout=rng.uniform(0, 0.003))
            if permit is not None:
                entries += 1
                try:
                    await asyncio.sleep(rng.uniform(0, 0.001))
                finally:
                    permit.release()
        elif how == 1:
            async with gate.hold(timeout=rng.choice([None, 0.002])):
                await asyncio.sleep(rng.uniform(0, 0.001))
                entries += 1
        else:
            async with asyncio.timeout(rng.uniform(0, 0.003)), gate:
                entries += 1
                await asyncio.sleep(rng.uniform(0, 0.001))

    async def bothered(gate: fairgate.Semaphore) -> None:
        """Is cancelled at whichever await it has reached."""
        task = asyncio.create_task(visit(gate))
        if rng.random() < 0.5:
            for _ in range(rng.randrange(6)):
                await asyncio.sleep(0)
        else:
            await asyncio.sleep(rng.uniform(0, 0.004))
        if rng.random() < 0.7:
            task.cancel()
        end = await ends_with(task)
        assert end is None or isinstance(end, asyncio.CancelledError | TimeoutError), repr(end)

    async def main() -> None:
        async with kind.join() as one, kind.join() as two:
            gates = [peer.semaphore("gpu", k, kind.protocol) for peer in (one, two)]
            for _ in range(TRIES // 5):
                await asyncio.gather(*[bothered(rng.choice(gates)) for _ in range(5)])
            await all_are_free(*gates)

    run(main())
    assert entries > 0


@each_place
def test_threads_that_give_up_leak_nothing(kind: Kind) -> None:
    rng = random.Random(1)
    with kind.sync_join() as one, kind.sync_join() as two:
        gates = [peer.semaphore("gpu", 2) for peer in (one, two)]

        def worker(seed: int) -> None:
            mine = random.Random(seed)
            for _ in range(TRIES // 4):
                permit = mine.choice(gates).acquire(timeout=mine.choice([0, 0.0005, 0.003]))
                if permit is not None:
                    permit.release()

        threads = [threading.Thread(target=worker, args=(rng.random(),)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(SOON)
        all_are_free_now(*gates)


@each_place
def test_closing_the_loop_of_a_waiter_leaks_no_permit(kind: Kind) -> None:
    loop = asyncio.new_event_loop()
    peer = loop.run_until_complete(kind.join().start())
    gate = peer.semaphore("gpu", 1)
    with kind.sync_join() as other:
        with other.semaphore("gpu", 1).hold(SOON):
            task = loop.create_task(gate.acquire())
            loop.run_until_complete(until(lambda: has_waiters(gate, 1)))
            loop.close()  # without cancelling the task

        async def main() -> None:
            await until_free(gate)
            await all_are_free(gate)
            await peer.close()

        run(main())
    task._log_destroy_pending = False  # type: ignore[attr-defined]  # private; it is pending on purpose


async def until_free(gate: fairgate.Semaphore) -> None:
    while await gate.requests():
        await asyncio.sleep(0.001)


# The end of a gate, or of a peer.


@each_kind
@pytest.mark.parametrize("what", ["gate", "peer"])
def test_close(kind: Kind, what: str) -> None:
    """Waiters get GateClosed, holders lose their permits, and other peers go on."""
    k = kind.k

    async def main() -> None:
        async with kind.join() as one, kind.join() as two:
            here, there = one.semaphore("gpu", k, kind.protocol), two.semaphore("gpu", k, kind.protocol)
            permits = [await take(here) for _ in range(k)]
            waiting = [asyncio.create_task(gate.acquire()) for gate in (here, there)]
            await until(lambda: has_waiters(there, 2))
            await (here if what == "gate" else one).close()
            assert isinstance(await ends_with(waiting[0]), fairgate.GateClosed)
            assert [bool(permit.lost) for permit in permits] == [True] * k
            for permit in permits:
                permit.release()
                with pytest.raises(fairgate.PermitLost, match="closed" if what == "gate" else "left"):
                    permit.check()
            other = await asyncio.wait_for(waiting[1], SOON)
            assert other is not None
            other.release()
            await all_are_free(there)
            with pytest.raises(fairgate.GateClosed):
                await here.acquire()
            if what == "gate":
                again = one.semaphore("gpu", k, kind.protocol)
                await all_are_free(again)
            else:
                for call in (here.requests, here.acquire, here.locked, here.close):
                    assert isinstance(await ends_with(call()), fairgate.GateClosed | None)
                with pytest.raises(fairgate.GateClosed):
                    one.semaphore("another", 1)
            await one.close()

    run(main())


@each_place
def test_close_while_many_threads_come_and_go(kind: Kind) -> None:
    """No thread hangs, and none gets an error other than GateClosed."""
    for _ in range(5):
        ends: list[BaseException | None] = []
        with kind.sync_join() as witness, kind.sync_join() as peer:

            def worker(peer: sync.Peer = peer, ends: list[BaseException | None] = ends) -> None:
                try:
                    while True:
                        gate = peer.semaphore("gpu", 2)
                        permit = gate.acquire()
                        assert permit is not None
                        permit.release()
                        gate.requests()
                except BaseException as error:
                    ends.append(error)

            threads = [threading.Thread(target=worker) for _ in range(4)]
            for thread in threads:
                thread.start()
            gate = witness.semaphore("gpu", 2)
            gate.hold(SOON).release()
            peer.close()
            for thread in threads:
                thread.join(SOON)
            assert len(ends) == len(threads)
            assert all(isinstance(end, fairgate.GateClosed | fairgate.PermitLost) for end in ends), ends
            all_are_free_now(gate)


# Lost permits.


@each_kind
def test_an_expired_lease_cancels_the_body(kind: Kind) -> None:
    k = kind.k
    reached: list[str] = []

    async def inside(gate: fairgate.Semaphore) -> None:
        async with gate.hold(lease=0.02) as permit:
            assert permit.left() is not None
            reached.append("in")
            await asyncio.sleep(SOON)
            reached.append("too far")

    async def main() -> None:
        async with kind.join() as one, kind.join() as two:
            here, there = one.semaphore("gpu", k, kind.protocol), two.semaphore("gpu", k, kind.protocol)
            others = [await take(there) for _ in range(k - 1)]
            with pytest.raises(fairgate.PermitLost, match="lease"):
                await inside(here)
            assert reached == ["in"]
            for other in others:
                other.release()
            await all_are_free(here, there)

    run(main())


@each_place
@pytest.mark.parametrize(("first", "then"), [(0.05, 0.15), (SOON, 0.05)])
def test_a_changed_lease_cancels_the_body(kind: Kind, first: float, then: float) -> None:
    """Neither before the new deadline nor long after it."""

    async def inside(gate: fairgate.Semaphore) -> None:
        async with gate.hold(lease=first) as permit:
            await asyncio.sleep(0.02)  # now the end of the first lease is being waited for
            permit.extend(then)
            try:
                await asyncio.sleep(SOON)
            finally:
                left = permit.left()
                assert left is not None
                assert left <= 0

    async def main() -> None:
        async with kind.join() as peer:
            with pytest.raises(fairgate.PermitLost, match="its lease has expired"):
                await inside(peer.lock("gpu"))

    run(main())


async def lost_and_cancelled(kind: Kind, gate: fairgate.Semaphore) -> None:
    task = asyncio.current_task()
    assert task is not None
    async with gate:
        task.cancel()
        kind.lose(gate)
        await asyncio.sleep(SOON)


async def lost_in_a_timeout(kind: Kind, gate: fairgate.Semaphore) -> None:
    async with asyncio.timeout(SOON), gate.hold(lease=0.01):
        await asyncio.sleep(SOON)


async def a_timeout_then_a_loss(kind: Kind, gate: fairgate.Semaphore) -> None:
    async with asyncio.timeout(0.01), gate:
        try:
            await asyncio.sleep(SOON)
        finally:
            kind.lose(gate)


async def a_loss_then_a_timeout(kind: Kind, gate: fairgate.Semaphore) -> None:
    async with asyncio.timeout(None) as limit, gate as permit:
        kind.lose(gate)
        permit.is_lost()  # one turn before the loop calls it
        limit.reschedule(0)
        await asyncio.sleep(SOON)


async def lost_with_a_group_inside(kind: Kind, gate: fairgate.Semaphore) -> None:
    async with gate.hold(lease=0.01), asyncio.TaskGroup() as group:
        group.create_task(asyncio.sleep(SOON))


async def lost_after_the_last_await(kind: Kind, gate: fairgate.Semaphore) -> None:
    """The task is cancelled, but the body ends before the cancellation reaches it."""
    async with gate as permit:
        kind.lose(gate)
        permit.is_lost()  # one turn before the loop calls it


async def lost_and_not_heard(kind: Kind, gate: fairgate.Semaphore) -> None:
    async with gate:
        kind.lose(gate)


async def lost_before_the_body(kind: Kind, gate: fairgate.Semaphore) -> None:
    permit = await take(gate)
    kind.lose(gate)
    async with permit:
        raise AssertionError


async def lost_and_another_error(kind: Kind, gate: fairgate.Semaphore) -> None:
    async with gate as permit:
        kind.lose(gate)
        permit.is_lost()  # one turn before the loop calls it
        raise KeyError


ENDS = [
    (lost_and_cancelled, asyncio.CancelledError),
    (lost_in_a_timeout, fairgate.PermitLost),
    (a_timeout_then_a_loss, TimeoutError),
    (a_loss_then_a_timeout, TimeoutError),
    (lost_with_a_group_inside, fairgate.PermitLost),
    (lost_after_the_last_await, fairgate.PermitLost),
    (lost_and_not_heard, fairgate.PermitLost),
    (lost_before_the_body, fairgate.PermitLost),
    (lost_and_another_error, KeyError),
]


@each_place
@pytest.mark.parametrize(("story", "end"), ENDS)
def test_a_loss_combined_with_other_cancellations(
    kind: Kind, story: Callable[[Kind, fairgate.Semaphore], Coroutine[Any, Any, None]], end: type[BaseException]
) -> None:
    """Other cancellations of the task still take effect, and none is delivered twice or late."""

    async def told(gate: fairgate.Semaphore) -> BaseException | None:
        found = await ends_with(story(kind, gate))
        await asyncio.sleep(0)
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == (end is asyncio.CancelledError)
        return found

    async def main() -> None:
        async with kind.join() as peer:
            gate = peer.semaphore("gpu", 1)
            assert type(await asyncio.create_task(told(gate))) is end
            await all_are_free(gate)

    run(main())


@each_place
def test_a_loss_in_a_task_group_ends_the_group(kind: Kind) -> None:
    async def inside(gate: fairgate.Semaphore) -> None:
        async with gate.hold(lease=0.01):
            await asyncio.sleep(SOON)

    async def group(gate: fairgate.Semaphore) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(inside(gate))
            group.create_task(asyncio.sleep(SOON))

    async def main() -> None:
        async with kind.join() as peer:
            gate = peer.semaphore("gpu", 1)
            found = await ends_with(asyncio.create_task(group(gate)))
            assert isinstance(found, ExceptionGroup)
            assert [type(error) for error in found.exceptions] == [fairgate.PermitLost]
            await all_are_free(gate)

    run(main())


@each_place
def test_a_thread_is_notified_of_a_lost_permit(kind: Kind) -> None:
    def inside(gate: sync.Semaphore) -> None:
        with gate.hold(lease=0.01) as permit:
            assert permit.lost.wait(SOON)
            with pytest.raises(fairgate.PermitLost):
                permit.extend(1)

    with kind.sync_join() as peer:
        gate = peer.semaphore("gpu", 1)
        with pytest.raises(fairgate.PermitLost):
            inside(gate)
        permit = gate.hold(lease=0.1)
        for _ in range(10):
            permit.extend(SOON)
        assert not permit.lost.wait(0.15)
        permit.extend(0.01)
        assert permit.lost.wait(SOON)
        permit.release()
        all_are_free_now(gate)


# Refusals.


@each_kind
def test_another_k_is_refused_and_forgotten(kind: Kind) -> None:
    k = kind.k

    async def main() -> None:
        async with kind.join() as one, kind.join() as two:
            permit = await take(one.semaphore("gpu", k, kind.protocol))

            async def other_k() -> None:
                """A room refuses to be opened, a cluster refuses the first request."""
                wrong = two.semaphore("gpu", 2 if k == 3 else 3)
                await wrong.acquire(timeout=0.001)  # usually times out before it is refused
                await asyncio.wait_for(wrong.acquire(), SOON)

            for _ in range(2):
                error = await ends_with(other_k())
                assert isinstance(error, fairgate.KMismatch), error
                assert f"is open with k={k}" in str(error)
            right = two.semaphore("gpu", k, kind.protocol)
            permit.release()
            await all_are_free(right)
            with pytest.raises(fairgate.BadInput, match="gpu"):
                two.semaphore("gpu", k + 1)

    run(main())


@each_place
def test_a_child_cannot_use_its_parents_peer(kind: Kind) -> None:
    with kind.sync_join() as peer:
        gate = peer.semaphore("gpu", 2)
        permit = gate.hold(SOON)
        child = os.fork()
        if child == 0:
            refused = 0
            calls: list[Callable[[], object]] = [
                gate.acquire, gate.requests, permit.release, gate.statistics, gate.close,
                lambda: gate.acquire(timeout=0), lambda: permit.extend(1), lambda: peer.semaphore("other", 1),
            ]  # fmt: skip
            for call in calls:
                try:
                    call()
                except fairgate.ForkedPeer:
                    refused += 1
            peer.close()  # belongs to the parent: a no-op
            os._exit(0 if refused == len(calls) and not permit.valid else 1)
        _, status = os.waitpid(child, 0)
        assert status == 0
        assert permit.valid
        permit.release()
        all_are_free_now(gate)
