"""A process that uses a gate alone keeps its slot (fairgate.room.keeping), and nobody else notices."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import ExitStack

import pytest

from fairgate.errors import GateClosed
from fairgate.room.layout import GRANTS, KEPT, LAST_FENCE
from fairgate.room.permit import Permit
from fairgate.room.room import Room
from fairgate.room.words import ATOMIC
from tests.room.children import Child, until
from tests.room.orders import Case, explore
from tests.room.versions import start_module
from tests.room.visitors import seen

SMALL = {
    Case((1, 1)): 564,
    Case((2, 1)): 1_503,
    Case((1, 2)): 1_037,
    Case((2, 2)): 2_986,
}
LARGE = {
    Case((1, 1), deaths=1): 18_950,
}
keeps = pytest.mark.skipif(not ATOMIC, reason="plain Python cannot keep a slot")


@pytest.mark.parametrize("case", SMALL)
def test_no_order_breaks_anything(case: Case) -> None:
    assert explore(case) == SMALL[case]


@pytest.mark.stress
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("case", LARGE)
def test_no_order_with_a_death_breaks_anything(case: Case) -> None:
    assert explore(case) == LARGE[case]


def enter(room: Room, entries: int) -> list[int]:
    """Enter and leave repeatedly. Returns the fences."""
    return [fence_of(room) for _ in range(entries)]


def fence_of(room: Room) -> int:
    permit = acquired(room)
    permit.release()
    return permit.fence


def acquired(room: Room) -> Permit:
    permit = room.acquire()
    assert permit is not None
    return permit


def resting(folder: str, me: Child) -> Room:
    """A room in a child that keeps its slot."""
    room = Room(folder, "g", 1)
    enter(room, 3)
    me.say("rests")
    return room


@keeps
def test_a_process_that_is_alone_keeps_its_slot(folder: str) -> None:
    with Room(folder, "g", 1) as room:
        fences = enter(room, 10)
        assert fences == list(range(fences[0], fences[0] + 10))
        assert room.file.m[KEPT] == 2 * fences[-1]
        assert room.requests() == []  # which ends that
        assert (room.file.m[KEPT], room.file.m[GRANTS], room.file.m[LAST_FENCE]) == (0, 10, fences[-1])


@keeps
def test_looking_does_not_end_it(folder: str) -> None:
    with Room(folder, "g", 1) as room:
        enter(room, 5)
        assert (seen(folder).inside, seen(folder).counters.grants) == ((), 5)
        permit = acquired(room)
        assert [one.request.fence for one in seen(folder).inside] == [permit.fence]
        assert room.file.m[KEPT]


def test_another_process_gets_in_while_it_rests(folder: str, children: ExitStack) -> None:
    def work(me: Child) -> None:
        room = resting(folder, me)
        me.hear()
        me.say(fence_of(room))

    child = children.enter_context(Child(work))
    assert child.hear() == "rests"
    with Room(folder, "g", 1) as room:
        permit = room.acquire(timeout=0)
        assert permit is not None
        child.say("enter")
        until(lambda: len(room.requests()) == 2)
        permit.release()
        assert int(child.hear()) == permit.fence + 1


def test_another_process_waits_while_it_is_inside(folder: str, children: ExitStack) -> None:
    def work(me: Child) -> None:
        room = resting(folder, me)
        permit = acquired(room)
        me.say(permit.fence)
        me.hear()
        permit.release()
        me.say("left")

    child = children.enter_context(Child(work))
    assert child.hear() == "rests"
    fence = int(child.hear())
    with Room(folder, "g", 1) as room:
        assert room.acquire(timeout=0) is None
        child.say("leave")
        assert acquired(room).fence == fence + 1


@pytest.mark.parametrize("inside", [False, True])
def test_a_killed_process_keeps_nothing(folder: str, children: ExitStack, inside: bool) -> None:
    def work(me: Child) -> None:
        room = resting(folder, me)
        permit = acquired(room) if inside else None
        me.say("ready")
        me.hear()
        assert permit

    child = children.enter_context(Child(work))
    assert [child.hear(), child.hear()] == ["rests", "ready"]
    child.end()
    with Room(folder, "g", 1) as room:
        assert room.acquire(timeout=1) is not None


def test_a_stopped_process_does_not_hold_up_others(folder: str, children: ExitStack) -> None:
    def work(me: Child) -> None:
        resting(folder, me)
        me.hear()

    child = children.enter_context(Child(work))
    assert child.hear() == "rests"
    os.kill(child.pid, signal.SIGSTOP)
    with Room(folder, "g", 1) as room:
        assert room.acquire(timeout=0) is not None
    os.kill(child.pid, signal.SIGCONT)


def test_a_permit_that_was_entered_again_can_be_revoked(folder: str) -> None:
    with Room(folder, "g", 1) as room, Room(folder, "g", 1) as other:
        enter(room, 3)
        permit = acquired(room)
        assert other.revoke(0, permit.fence)
        assert permit.why_lost() == "it was revoked"
        permit.release()
        assert enter(other, 1) == [permit.fence + 1]


def test_a_lease_given_later_ends_with_its_permit(folder: str) -> None:
    with Room(folder, "g", 1) as room:
        enter(room, 3)
        permit = acquired(room)
        assert permit.extend(10**10)
        permit.release()
        assert acquired(room).deadline() == 0


def test_two_threads_exclude_each_other(folder: str) -> None:
    inside: list[int] = []
    most: list[int] = []

    def work() -> None:
        for _ in range(300):
            permit = acquired(room)
            inside.append(1)
            most.append(len(inside))
            inside.pop()
            permit.release()

    with Room(folder, "g", 1) as room:
        threads = [threading.Thread(target=work) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (len(most), max(most)) == (600, 1)


def test_a_removed_file_is_noticed(folder: str) -> None:
    with Room(folder, "g", 1) as room:
        enter(room, 3)
        os.unlink(room.file.path)
        with pytest.raises(GateClosed, match="was removed"):
            enter(room, 10**6)  # it takes 10 ms


def test_a_closed_room_keeps_nothing(folder: str) -> None:
    with Room(folder, "g", 1) as room:
        enter(room, 3)
    with Room(folder, "g", 2) as room:  # it is not in use, so it takes another k
        assert (room.file.m[KEPT], room.requests()) == (0, [])


@keeps
@pytest.mark.parametrize("plain", [False, True], ids=["compiled", "plain"])
def test_processes_that_contend_exclude_each_other(folder: str, plain: bool) -> None:
    """One of them is compiled, and keeps its slot; the other one is, or is not."""
    started = [start_module("collisions", each, folder, "2") for each in (False, plain)]
    told = [process.communicate(timeout=60)[0].split() for process in started]
    assert [int(met) for _, met in told] == [0, 0]
    assert all(int(entries) > 100 for entries, _ in told)
