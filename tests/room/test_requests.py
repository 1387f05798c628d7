"""Requests of real processes: order, several permits at once, leases, changes of k, and bad input."""

from __future__ import annotations

import os
import threading
import time
from contextlib import ExitStack

import pytest

from fairgate.errors import BadInput, KMismatch
from fairgate.room.calls import read_tickets
from fairgate.room.layout import SEATS
from fairgate.room.room import Room
from tests.room.children import Child, bells, visitor, waits


def test_slots_are_the_lowest_free_ones_and_fences_rise(folder: str) -> None:
    with Room(folder, "g", 3) as room:
        first, second, third = (room.acquire(timeout=0) for _ in range(3))
        assert first
        assert second
        assert third
        assert [permit.slots for permit in (first, second, third)] == [(0,), (1,), (2,)]
        second.release()
        again = room.acquire(timeout=0)
        assert again
        assert again.slots == (1,)
        assert first.fence < second.fence < third.fence < again.fence


def test_a_full_room_lets_nobody_in(folder: str) -> None:
    with Room(folder, "g", 1) as room:
        permit = room.acquire()
        assert permit
        assert room.acquire(timeout=0) is None
        assert room.acquire(timeout=0.05) is None
        permit.release()
        permit.release()  # a no-op
        assert room.acquire(timeout=0) is not None


def test_several_permits_at_once(folder: str) -> None:
    with Room(folder, "g", 3) as room:
        pair = room.acquire(permits=2)
        assert pair
        assert pair.slots == (0, 1)
        assert room.acquire(permits=2, timeout=0) is None
        single = room.acquire(timeout=0)
        assert single
        assert single.slots == (2,)
        pair.release()
        assert room.acquire(permits=2, timeout=0) is not None


def test_a_large_request_is_not_starved_by_small_ones(folder: str, children: ExitStack) -> None:
    with Room(folder, "g", 2) as room:
        permit = room.acquire()
        large = children.enter_context(Child(visitor(folder, 2, permits=2)))
        assert large.hear() == "asks"
        waits(room, 1)
        assert room.acquire(timeout=0) is None  # a slot is free, but the large request is first
        assert permit
        permit.release()
        assert large.hear() == "0"


def test_waiters_enter_in_order(folder: str, children: ExitStack) -> None:
    with Room(folder, "g", 1) as room:
        permit = room.acquire()
        line = []
        for number in range(5):
            line.append(children.enter_context(Child(visitor(folder, 1))))
            waits(room, number + 1)
        assert permit
        permit.release()
        for child in line:
            assert [child.hear(), child.hear()] == ["asks", "0"]
            child.say("leave")
            assert child.hear() == "left"


def test_requests_are_listed_with_holders_first_and_waiters_in_order(folder: str, children: ExitStack) -> None:
    with Room(folder, "g", 2) as room:
        first, second = room.acquire(), room.acquire()
        assert first
        assert second
        child = children.enter_context(Child(visitor(folder, 2)))
        waits(room, 1)
        listed = room.requests()
        assert [(each.inside, each.slots, each.pid) for each in listed] == [
            (True, (0,), os.getpid()),
            (True, (1,), os.getpid()),
            (False, (), child.pid),
        ]
        assert [each.fence for each in listed[:2]] == [first.fence, second.fence]
        assert listed[0].ticket < listed[1].ticket < listed[2].ticket


def test_a_ring_for_an_earlier_request_lets_nobody_in(folder: str, children: ExitStack) -> None:
    with Room(folder, "g", 1) as room:
        permit = room.acquire()
        assert permit
        waiter = children.enter_context(Child(visitor(folder, 1)))
        assert waiter.hear() == "asks"
        waits(room, 1)
        (bell,) = [name for name in bells(folder) if name != os.path.basename(permit.visit.bell.path)]
        with open(f"{folder}/{bell}", "wb", buffering=0) as pipe:
            pipe.write(permit.ticket.to_bytes(8, "little"))
        assert waiter.is_silent()
        permit.release()
        assert waiter.hear() == "0"


def test_holders_are_not_woken_again_once_they_know(folder: str) -> None:
    with Room(folder, "g", 2) as room:
        permit = room.acquire()
        assert permit
        room.change(room.file.rebuild)
        assert read_tickets(permit.visit.bell.fd) == []


def test_threads_of_one_process_share_a_room(folder: str) -> None:
    inside: list[int] = []
    most: list[int] = []

    def work() -> None:
        for _ in range(30):
            permit = room.acquire()
            assert permit
            inside.append(1)
            most.append(len(inside))
            time.sleep(0.0005)
            inside.pop()
            permit.release()

    with Room(folder, "g", 2) as room:
        threads = [threading.Thread(target=work) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert len(most) == 180
        assert max(most) <= 2


def test_a_room_grows(folder: str) -> None:
    with Room(folder, "g", 500) as room:
        permits = [room.acquire(timeout=0) for _ in range(300)]
        assert sorted(permit.slots[0] for permit in permits if permit) == list(range(300))
        assert room.file.m[SEATS] >= 300


def test_a_lease_ends_and_the_next_waiter_enters(folder: str, children: ExitStack) -> None:
    holder = children.enter_context(Child(visitor(folder, 1, lease=0.2)))
    assert [holder.hear(), holder.hear()] == ["asks", "0"]
    with Room(folder, "g", 1) as room:
        permit = room.acquire(timeout=5)
        assert permit
        holder.say("valid?")
        assert holder.hear() == "False"


def test_a_lease_can_be_extended(folder: str) -> None:
    with Room(folder, "g", 1) as room:
        permit = room.acquire(lease=0.2)
        assert permit
        assert permit.extend(60 * 10**9)
        assert room.acquire(timeout=0.4) is None
        assert permit.is_valid()


def test_an_ended_lease_cannot_be_extended(folder: str) -> None:
    with Room(folder, "g", 1) as room:
        permit = room.acquire(lease=0.01)
        assert permit
        time.sleep(0.02)
        assert not permit.is_valid()
        assert not permit.extend(60 * 10**9)


def test_a_revoked_permit_is_not_valid(folder: str, children: ExitStack) -> None:
    holder = children.enter_context(Child(visitor(folder, 1)))
    assert [holder.hear(), holder.hear()] == ["asks", "0"]
    with Room(folder, "g", 1) as room:
        assert not room.revoke(5)
        assert room.revoke(0)
        assert not room.revoke(0)
        assert room.acquire(timeout=0) is not None
    holder.say("valid?")
    assert holder.hear() == "False"


def test_k_can_be_changed_while_the_gate_is_in_use(folder: str) -> None:
    with Room(folder, "g", 1) as room:
        first = room.acquire()
        room.resize(2)
        second = room.acquire(timeout=0)
        assert first
        assert second
        room.resize(1)
        first.release()
        assert room.acquire(timeout=0) is None  # the second one is inside
        second.release()
        assert room.acquire(timeout=0) is not None


@pytest.mark.parametrize("seconds", [-1.0, 1e10, float("inf"), float("nan")])
def test_times_that_cannot_be_counted_are_refused(folder: str, seconds: float) -> None:
    with Room(folder, "g", 1) as room:
        with pytest.raises(BadInput, match="lease must be 0 to 1e"):
            room.acquire(lease=seconds)
        with pytest.raises(BadInput, match="timeout must be 0 to 1e"):
            room.acquire(timeout=seconds)
        assert room.acquire(timeout=0) is not None


def test_an_impossible_k_is_refused(folder: str) -> None:
    for k in (-1, 1025):
        with pytest.raises(BadInput, match=f"k must be 1..1024, not {k}"):
            Room(folder, "g", k)
    with Room(folder, "g", 1) as room:
        for k in (0, 1025):
            with pytest.raises(BadInput, match=f"k must be 1..1024, not {k}"):
                room.resize(k)


def test_another_k_is_refused_while_the_gate_is_in_use(folder: str) -> None:
    with Room(folder, "g", 2) as room:
        permit = room.acquire()
        with pytest.raises(KMismatch, match="gate g is open with k=2, not k=3"):
            Room(folder, "g", 3)
        assert permit
        permit.release()
    Room(folder, "g", 3).close()


def test_more_permits_than_slots_are_refused(folder: str) -> None:
    with Room(folder, "g", 2) as room:
        for permits in (0, -1, 3):
            with pytest.raises(BadInput, match=f"cannot acquire {permits} slots of gate g: its k is 2"):
                room.acquire(permits=permits)


def test_k_does_not_become_smaller_than_a_waiter_wants(folder: str, children: ExitStack) -> None:
    with Room(folder, "g", 3) as room:
        permit = room.acquire(permits=2)
        assert permit
        greedy = children.enter_context(Child(visitor(folder, 3, permits=3)))
        waits(room, 1)
        with pytest.raises(BadInput, match=f"k cannot be 2 while pid {greedy.pid} waits for 3"):
            room.resize(2)
        greedy.end()
        room.resize(2)
        assert [each.permits for each in room.requests()] == [2]
