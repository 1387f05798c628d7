"""Rooms with real processes: order, deaths, stops, leases, and files that cannot be used."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from fairgate.errors import BadInput, ForkedPeer, GateClosed, KMismatch
from fairgate.room import links, rules, table
from fairgate.room.layout import (
    BOOT,
    FAR,
    HEAD,
    LOOKS,
    MAGIC,
    NEAR,
    SEATS,
    SKIPPED,
    SLOTS,
    STATE,
    TICK,
    TICKET,
    VERSION,
    K,
)
from fairgate.room.room import Room
from fairgate.room.rules import Request
from fairgate.room.table import Change
from fairgate.room.words import copied
from tests.room.children import Child


def visitor(folder: str, k: int, **how: float) -> Callable[[Child], None]:
    """Enters, says its slot, and leaves when it is told to."""

    def work(me: Child) -> None:
        with Room(folder, "g", k) as room:
            me.say("asks")
            permit = room.acquire(**how)  # type: ignore[arg-type]
            if permit is None:
                me.say("late")
                return
            me.say(permit.slots[0])
            while me.hear() == "valid?":
                me.say(permit.is_valid())
            permit.release()
            me.say("left")
            me.hear()

    return work


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.002)


def waits(room: Room, count: int) -> None:
    """Until this many requests wait."""
    until(lambda: len([request for request in room.requests() if not request.inside]) >= count)


def bells(folder: str) -> list[str]:
    return [name for name in os.listdir(folder) if name.endswith(".bell")]


# Entering and leaving.


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


# Deaths.


def test_a_killed_holder_frees_its_slot(folder: str, children: ExitStack) -> None:
    holder = children.enter_context(Child(visitor(folder, 1)))
    assert [holder.hear(), holder.hear()] == ["asks", "0"]
    waiter = children.enter_context(Child(visitor(folder, 1)))
    assert waiter.hear() == "asks"
    with Room(folder, "g") as room:
        waits(room, 1)
    holder.end()
    assert waiter.hear(1.0) == "0"
    assert len(bells(folder)) == 1  # the waiter's


def test_a_killed_waiter_is_passed_over(folder: str, children: ExitStack) -> None:
    with Room(folder, "g", 1) as room:
        permit = room.acquire()
        first = children.enter_context(Child(visitor(folder, 1)))
        waits(room, 1)
        second = children.enter_context(Child(visitor(folder, 1)))
        waits(room, 2)
        first.end()
        waits(room, 1)
        assert permit
        permit.release()
        assert [second.hear(), second.hear()] == ["asks", "0"]


def test_everything_that_a_killed_process_held_is_free(folder: str, children: ExitStack) -> None:
    def greedy(me: Child) -> None:
        room = Room(folder, "g", 3)
        held = [room.acquire() for _ in range(3)]
        me.say(len(held))
        me.hear()

    child = children.enter_context(Child(greedy))
    assert child.hear() == "3"
    child.end()
    with Room(folder, "g", 3) as room:
        assert all(room.acquire(timeout=0) for _ in range(3))


def test_processes_that_a_killed_holder_left_behind_keep_its_slot(folder: str, children: ExitStack) -> None:
    def starter(me: Child) -> None:
        room = Room(folder, "g", 1)
        permit = room.acquire()
        assert permit
        permit.share()
        if os.fork() == 0:
            me.say(os.getpid())
            time.sleep(60)
        me.hear()

    child = children.enter_context(Child(starter))
    left_behind = int(child.hear())
    child.end()
    try:
        with Room(folder, "g", 1) as room:
            assert room.acquire(timeout=0.2) is None
            os.kill(left_behind, signal.SIGKILL)
            assert room.acquire(timeout=5) is not None
    finally:
        os.kill(left_behind, signal.SIGKILL) if os.path.exists(f"/proc/{left_behind}") else None


# Stops.


def test_a_stopped_waiter_is_passed_over_and_keeps_its_ticket(folder: str, children: ExitStack) -> None:
    with Room(folder, "g", 1) as room:
        permit = room.acquire()
        first = children.enter_context(Child(visitor(folder, 1)))
        assert first.hear() == "asks"
        waits(room, 1)
        second = children.enter_context(Child(visitor(folder, 1)))
        assert second.hear() == "asks"
        waits(room, 2)
        third = children.enter_context(Child(visitor(folder, 1)))
        assert third.hear() == "asks"
        waits(room, 3)
        first.stop()
        assert permit
        permit.release()
        assert second.hear() == "0"
        first.send(signal.SIGCONT)
        until(lambda: not any(links.is_skipped(room.file.m, seat) for seat in links.waiters(room.file.m)))
        second.say("leave")
        assert first.hear() == "0"
        assert third.is_silent()


def test_a_stopped_holder_keeps_its_slot(folder: str, children: ExitStack) -> None:
    holder = children.enter_context(Child(visitor(folder, 1)))
    assert [holder.hear(), holder.hear()] == ["asks", "0"]
    holder.stop()
    with Room(folder, "g", 1) as room:
        assert room.acquire(timeout=0.3) is None


def test_a_process_that_is_stopped_with_the_lock_is_continued(folder: str, children: ExitStack) -> None:
    def stubborn(me: Child) -> None:
        room = Room(folder, "g", 1)

        def hold(change: Change) -> None:
            me.say("locked")
            os.kill(os.getpid(), signal.SIGSTOP)

        room.change(hold)
        me.say("unlocked")
        me.hear()

    child = children.enter_context(Child(stubborn))
    assert child.hear() == "locked"
    with Room(folder, "g") as room:
        assert room.acquire(timeout=5) is not None


# Leases, and other ways to lose a permit.


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


# Interrupts, forks, the end of a process.


def test_ctrl_c_while_waiting_leaves_nothing_behind(folder: str, children: ExitStack) -> None:
    def interrupted(me: Child) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        room = Room(folder, "g", 1)
        me.say("asks")
        try:
            room.acquire()
        except KeyboardInterrupt:
            me.say("interrupted")
        me.hear()

    with Room(folder, "g", 1) as room:
        permit = room.acquire()
        child = children.enter_context(Child(interrupted))
        assert child.hear() == "asks"
        waits(room, 1)
        child.send(signal.SIGINT)
        assert child.hear() == "interrupted"
        assert not list(links.waiters(room.file.m))
        assert permit
        permit.release()
        assert room.acquire(timeout=0) is not None


def test_a_forked_child_cannot_use_the_room(folder: str, children: ExitStack) -> None:
    with Room(folder, "g", 2) as room:
        permit = room.acquire()

        def use(me: Child) -> None:
            try:
                room.acquire()
            except ForkedPeer as refused:
                me.say(refused)
            me.hear()

        child = children.enter_context(Child(use))
        assert "opened by another process" in child.hear()
        assert permit
        permit.release()
        assert room.acquire(timeout=0) is not None  # the child does not keep the parent's lock or bells


def test_a_process_that_ends_without_releasing_leaves_nothing_taken(folder: str, children: ExitStack) -> None:
    def careless(me: Child) -> None:
        import atexit  # noqa: PLC0415

        room = Room(folder, "g", 1)
        permit = room.acquire()
        me.say(permit is not None)
        atexit._run_exitfuncs()

    child = children.enter_context(Child(careless))
    assert child.hear() == "True"
    assert child.hear() == ""
    with Room(folder, "g", 1) as room:
        assert room.acquire(timeout=5) is not None
        assert len(bells(folder)) == 1


def test_a_child_of_a_process_that_died_with_the_lock_does_not_keep_it(folder: str, children: ExitStack) -> None:
    def parent(me: Child) -> None:
        room = Room(folder, "g", 1)
        if os.fork() == 0:
            me.say(os.getpid())
            time.sleep(60)

        def die(change: Change) -> None:
            os.kill(os.getpid(), signal.SIGKILL)

        time.sleep(0.1)
        room.change(die)

    dying = children.enter_context(Child(parent))
    orphan = int(dying.hear())
    try:
        until(lambda: Path(f"/proc/{dying.pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z")
        began = time.monotonic()
        with Room(folder, "g", 1) as room:
            assert room.acquire(timeout=5) is not None
        assert time.monotonic() - began < 5
    finally:
        os.kill(orphan, signal.SIGKILL)


def test_closing_a_room_ends_the_waits_of_its_threads(folder: str) -> None:
    ended: list[str] = []

    def wait() -> None:
        try:
            room.acquire()
        except GateClosed:
            ended.append("closed")

    with Room(folder, "g", 1) as other:
        held = other.acquire()
        assert held
        room = Room(folder, "g", 1)
        threads = [threading.Thread(target=wait) for _ in range(6)]
        for thread in threads:
            thread.start()
        waits(other, 6)
        room.close()
        for thread in threads:
            thread.join(20)
        assert ended == ["closed"] * 6
        assert held.is_valid()


def test_a_shared_bell_is_not_used_again(folder: str) -> None:
    with Room(folder, "g", 2) as other:
        room = Room(folder, "g", 2)
        first, second = room.acquire(), room.acquire()
        assert first
        assert second
        shared = first.share()
        first.release()
        third = room.acquire()
        assert third
        assert third.visit.bell.fd != shared or not os.get_inheritable(third.visit.bell.fd)
        room.close()
        assert [other.acquire(timeout=0) is not None for _ in range(2)] == [True, True]


def test_closing_in_a_forked_child_leaves_the_parent_alone(folder: str, children: ExitStack) -> None:
    with Room(folder, "g", 1) as room:
        permit = room.acquire()
        assert permit
        permit.release()  # its bell is spare now

        def close(me: Child) -> None:
            room.close()
            me.say("closed")
            me.hear()

        child = children.enter_context(Child(close))
        assert child.hear() == "closed"
        assert len(bells(folder)) == 1
        assert room.acquire(timeout=0) is not None


# Bad input and bad files.


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
            with pytest.raises(BadInput, match=f"gate g has 2 slots: cannot acquire {permits}"):
                room.acquire(permits=permits)


def test_a_closed_room_cannot_be_used(folder: str) -> None:
    room = Room(folder, "g", 2)
    room.close()
    room.close()
    with pytest.raises(GateClosed):
        room.acquire()


def test_a_removed_file_is_noticed(folder: str) -> None:
    with Room(folder, "g", 1) as room:
        os.unlink(room.file.path)
        with pytest.raises(GateClosed, match="was removed"):
            room.acquire()


def test_a_file_that_is_removed_while_somebody_waits_is_noticed(folder: str, children: ExitStack) -> None:
    def work(me: Child) -> None:
        with Room(folder, "g", 1) as room:
            me.say("asks")
            with pytest.raises(GateClosed, match="was removed"):
                room.acquire()
            me.say("noticed")

    with Room(folder, "g", 1) as room:
        permit = room.acquire()
        child = children.enter_context(Child(work))
        assert child.hear() == "asks"
        waits(room, 1)
        os.unlink(room.file.path)
        assert child.hear() == "noticed"
        assert permit
        permit.release()


def prepared(folder: str, change: Callable[[Path], None]) -> Path:
    Room(folder, "g", 1).close()
    path = Path(folder) / "g.gate"
    change(path)
    return path


def overwrite(at: int, value: int) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        data = bytearray(path.read_bytes())
        data[8 * at : 8 * at + 8] = value.to_bytes(8, "little", signed=True)
        path.write_bytes(data)

    return change


UNUSABLE = {
    "not a gate file": overwrite(MAGIC, 7),
    "it has version 99": overwrite(VERSION, 99),
    "its header is damaged": overwrite(K, 0),
    "it is cut off: ": overwrite(SEATS, 100_000),
}


@pytest.mark.parametrize("why", UNUSABLE)
def test_unusable_files_are_refused_in_one_line(folder: str, why: str) -> None:
    prepared(folder, UNUSABLE[why])
    with pytest.raises(BadInput) as refused:
        Room(folder, "g", 1)
    assert why in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_table_of_another_boot_is_started_again_with_higher_fences(folder: str) -> None:
    with Room(folder, "g", 1) as room:
        permit = room.acquire()
        assert permit
        fence = permit.fence
    overwrite(BOOT, 12345)(Path(folder) / "g.gate")
    with Room(folder, "g", 1) as room:
        permit = room.acquire(timeout=0)
        assert permit
        assert permit.fence > fence


@pytest.mark.parametrize("seed", range(20))
def test_damaged_tables_neither_crash_nor_hang(folder: str, seed: int) -> None:
    """Whatever stands in the file: requests are refused, or the table is rebuilt."""
    rng = random.Random(seed)
    for _ in range(25):
        with Room(folder, "g", 2) as room:
            held = [room.acquire(timeout=0) for _ in range(2)]
            m = room.file.m
            for _ in range(rng.randrange(1, 30)):
                at = rng.choice([rng.randrange(K, SLOTS + 4), links.first_seat(m) + rng.randrange(64)])
                m[at] = rng.choice([0, 1, -1, rng.randrange(2000), rng.randrange(-(1 << 62), 1 << 62)])
            with suppress(BadInput, GateClosed):
                room.acquire(timeout=0)
            del held
        os.unlink(room.file.path)


def test_a_rebuilt_table_keeps_everybody(folder: str) -> None:
    """As after a death in the middle of a change."""
    with Room(folder, "g", 2) as room:
        permits = [room.acquire(timeout=0) for _ in range(2)]
        room.change(room.file.rebuild)
        assert all(permit and permit.is_valid() for permit in permits)
        assert room.acquire(timeout=0) is None


# Rules that only show over time.


def test_waiters_near_an_end_of_the_queue_tick_often() -> None:
    """Skipped waiters do not count, nor do the tickets of requests that gave up."""
    m = copied(bytes(8 * links.size(1, 60)))
    table.create(m, 1, 60, 1, 0, 0)
    change = Change(0, table.nobody_is_stopped)

    class Everybody:
        def is_gone(self, seat: int) -> bool:
            return False

        def is_stopped(self, seat: int) -> bool:
            return False

    def ask(owner: int) -> int:
        return rules.ask(m, change, Everybody(), Request(owner, owner, 1, 0, 1, 0))

    ask(1)
    skipped, first, second = ask(2), ask(3), ask(4)
    m[skipped + SKIPPED] = 1
    m[second + TICKET] += 10_000  # many requests between the two have given up
    assert m[HEAD] == skipped
    assert rules.duties(m, first, 0).when == TICK
    assert rules.duties(m, second, 0).when == 2 * TICK
    queue = [first, second, *[ask(number) for number in range(5, 60)]]
    places = [rules.duties(m, seat, 0).when // TICK - 1 for seat in queue]
    assert places[:NEAR] == list(range(NEAR))
    assert places[-NEAR:] == list(range(NEAR, 0, -1))
    assert places[NEAR:-NEAR] == list(range(NEAR, len(queue) - NEAR))
    assert [m[seat + LOOKS] for seat in queue] == [(1 + place) * TICK for place in places]
    m[queue[30] + TICKET] += 10_000
    assert rules.duties(m, queue[30], 0).when == (1 + FAR) * TICK


def test_those_that_look_again_are_woken_before_those_let_in() -> None:
    m = copied(bytes(8 * links.size(2, 4)))
    table.create(m, 2, 4, 2, 0, 0)
    seats = list(links.all_seats(m))
    for seat, state in zip(seats, (2, 2, 1, 3), strict=True):
        m[seat + STATE] = state
    assert table.in_order(m, seats) == [seats[2], seats[3], seats[1], seats[0]]
