"""Processes that are killed or stopped while they hold a permit, wait for one, or change the table."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from fairgate.room import links
from fairgate.room.calls import clock, is_stopped
from fairgate.room.layout import DIRTY, FREE, NUDGED, REBUILT, STATE
from fairgate.room.room import Room
from fairgate.room.table import Change
from tests.room.children import Child, bells, until, visitor, waits


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


def test_everything_that_a_killed_process_held_is_free_although_its_child_lives(
    folder: str, children: ExitStack
) -> None:
    def parent(me: Child) -> None:
        room = Room(folder, "g", 1)
        permit = room.acquire()
        if os.fork() == 0:
            me.say(os.getpid())
            time.sleep(60)
        me.hear()
        del permit

    child = children.enter_context(Child(parent))
    orphan = int(child.hear())
    child.end()
    try:
        with Room(folder, "g", 1) as room:
            assert room.acquire(timeout=5) is not None
    finally:
        os.kill(orphan, signal.SIGKILL)


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
    until(lambda: is_stopped(child.pid))  # as it was
    child.send(signal.SIGCONT)
    assert child.hear() == "unlocked"


def test_a_process_that_dies_in_the_middle_of_a_change_is_repaired(folder: str, children: ExitStack) -> None:
    def dying(me: Child) -> None:
        room = Room(folder, "g", 1)
        permit = room.acquire()
        assert permit
        m = room.file.m

        def die(change: Change) -> None:
            m[DIRTY] = 1
            m[permit.seat + STATE] = FREE
            me.say("dies")
            os.kill(os.getpid(), signal.SIGKILL)

        room.change(die)

    with Room(folder, "g", 1) as room:
        child = children.enter_context(Child(dying))
        assert child.hear() == "dies"
        assert room.requests() == []
        assert (room.file.m[REBUILT], room.file.m[DIRTY]) == (1, 0)
        assert room.acquire(timeout=0) is not None


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


# Deaths before anybody was told.


def crowd(folder: str, k: int) -> Callable[[Child], None]:
    """Waits with as many threads as it is told, one after the other. Each leaves as soon as it is inside."""

    def work(me: Child) -> None:
        room = Room(folder, "g", k)
        while count := int(me.hear() or 0):
            before = len(room.requests())
            for number in range(count):
                threading.Thread(target=visit, args=(room,)).start()
                waits(room, before + number + 1 - k)
            me.say("wait")

    def visit(room: Room) -> None:
        permit = room.acquire()
        assert permit
        permit.release()

    return work


def test_a_grant_that_nobody_announces_is_found_by_the_last_waiters(folder: str, children: ExitStack) -> None:
    """Many waiters are let in at once, so that the next one does not know that it is near. Its tick is far away."""

    def mute(me: Child) -> None:
        """Lets the next one in, and dies before it can tell it."""
        room = Room(folder, "g", 2)
        permit = room.acquire()
        assert permit
        me.say("inside")
        me.hear()

        def die(change: Change) -> None:
            permit.run(change)
            os.kill(os.getpid(), signal.SIGKILL)

        room.change(die)

    with Room(folder, "g", 2) as room:
        held = [room.acquire(), room.acquire()]
        m = room.file.m
        m[NUDGED] = clock() + 3600 * 10**9  # no first waiter is told of its duties
        dying = children.enter_context(Child(mute))
        waits(room, 1)
        many = children.enter_context(Child(crowd(folder, 2)))
        many.say(60)
        assert many.hear() == "wait"
        holder = children.enter_context(Child(visitor(folder, 2)))
        waits(room, 62)
        late = children.enter_context(Child(visitor(folder, 2)))
        waits(room, 63)
        many.say(30)
        assert many.hear() == "wait"
        time.sleep(0.25)  # all of them have looked, and know how far they are from both ends
        for permit in held:
            assert permit
            permit.release()
        assert [dying.hear(), holder.hear(), holder.hear(), late.hear()] == ["inside", "asks", "1", "asks"]
        dying.say("die")
        assert late.hear(0.5) == "0"


def test_a_dead_process_is_not_listed(folder: str, children: ExitStack) -> None:
    """Even if nobody has come since who would free its slot."""
    holder = children.enter_context(Child(visitor(folder, 1)))
    assert [holder.hear(), holder.hear()] == ["asks", "0"]
    with Room(folder, "g") as room:
        assert [each.pid for each in room.requests()] == [holder.pid]
        holder.end()
        assert room.requests() == []
