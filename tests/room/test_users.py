"""Users of a group that share a gate, which they name by its path in a directory of their group."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from fairgate.errors import GateStuck
from fairgate.room.calls import is_stopped
from fairgate.room.room import Room
from fairgate.room.table import Change
from tests.room.children import Child, bells, until, waits
from tests.room.others import ALICE, BOB, TEAM, become, needs_root, open_folder

pytestmark = needs_root


@pytest.fixture
def shared() -> Iterator[str]:
    with open_folder() as folder:
        os.chown(folder, 0, TEAM)
        os.chmod(folder, 0o2770)
        yield folder


def member(user: int, folder: str, work: Callable[[Child, Room], None]) -> Child:
    """A process of this user, who is in the group."""

    def joined(me: Child) -> None:
        os.setsid()  # within a session, everybody may continue everybody
        os.umask(0o077)  # that of careful users
        become(user, [TEAM])
        with Room(folder, f"{folder}/g", 1) as room:
            me.say("opened")
            work(me, room)

    child = Child(joined)
    assert child.hear() == "opened"
    return child


def visit(me: Child, room: Room) -> None:
    permit = room.acquire()
    assert permit
    me.say("inside")
    me.hear()
    permit.release()
    me.say("left")
    me.hear()


def keep_the_lock(me: Child, room: Room) -> None:
    def hold(change: Change) -> None:
        me.say("locked")
        me.hear()

    room.change(hold)
    me.say("unlocked")
    me.hear()


def test_two_users_take_turns(shared: str, children: ExitStack) -> None:
    alice = children.enter_context(member(ALICE, shared, visit))
    assert alice.hear() == "inside"
    with Room(shared, f"{shared}/g") as room:
        bob = children.enter_context(member(BOB, shared, visit))
        waits(room, 1)
        again = children.enter_context(member(ALICE, shared, visit))
        waits(room, 2)
        assert [each.user for each in room.requests()] == [ALICE, BOB, ALICE]
    for child, following in ((alice, bob), (bob, again)):
        child.say("leave")
        assert child.hear() == "left"
        assert following.hear() == "inside"


def test_a_killed_holder_of_another_user_frees_its_slot(shared: str, children: ExitStack) -> None:
    alice = children.enter_context(member(ALICE, shared, visit))
    assert alice.hear() == "inside"
    bob = children.enter_context(member(BOB, shared, visit))
    with Room(shared, f"{shared}/g") as room:
        waits(room, 1)
    alice.end()
    assert bob.hear(1.0) == "inside"
    assert len(bells(shared)) == 1


def test_a_stopped_waiter_of_another_user_is_passed_over(shared: str, children: ExitStack) -> None:
    with Room(shared, f"{shared}/g", 1) as room:
        permit = room.acquire()
        alice = children.enter_context(member(ALICE, shared, visit))
        waits(room, 1)
        bob = children.enter_context(member(BOB, shared, visit))
        waits(room, 2)
        alice.stop()
        assert permit
        permit.release()
        assert bob.hear() == "inside"
        alice.send(signal.SIGCONT)
        bob.say("leave")
        assert alice.hear() == "inside"


def test_a_stopped_process_of_another_user_that_has_the_lock_is_waited_for(shared: str, children: ExitStack) -> None:
    """Bob may not continue it."""
    alice = children.enter_context(member(ALICE, shared, keep_the_lock))
    assert alice.hear() == "locked"
    alice.stop()
    alice.say("go on")

    def try_it(me: Child) -> None:
        os.setsid()
        become(BOB, [TEAM])
        room = Room(shared, f"{shared}/g", 1)
        me.say("opened")
        visit(me, room)

    bob = children.enter_context(Child(try_it))
    assert bob.is_silent()
    assert is_stopped(alice.pid)
    alice.send(signal.SIGCONT)
    assert [bob.hear(), bob.hear()] == ["opened", "inside"]


def test_the_process_that_has_the_lock_is_named(shared: str, children: ExitStack) -> None:
    with Room(shared, f"{shared}/g", 1) as room:
        alice = children.enter_context(member(ALICE, shared, keep_the_lock))
        assert alice.hear() == "locked"
        assert room.file.stuck(alice.pid) is None  # it is only slow
        alice.stop()
        said = str(room.file.stuck(alice.pid))
        assert f"{alice.pid}, which is stopped: continue it with kill -CONT {alice.pid}" in said


@pytest.mark.stress  # because of the time that it takes
def test_a_permit_can_be_released_although_the_lock_is_stuck(shared: str, children: ExitStack) -> None:
    """Bob's bell is closed instead, so that he counts as dead."""

    def release(me: Child, room: Room) -> None:
        permit = room.acquire()
        assert permit
        me.say("inside")
        stopped = me.hear()
        with pytest.raises(GateStuck, match=f"by process {stopped}, which is stopped"):
            room.requests()
        permit.release()
        me.say(permit.is_valid())
        me.hear()

    bob = children.enter_context(member(BOB, shared, release))
    assert bob.hear() == "inside"
    alice = children.enter_context(member(ALICE, shared, keep_the_lock))
    assert alice.hear() == "locked"
    alice.stop()
    bob.say(alice.pid)
    assert bob.hear(60) == "False"
    alice.send(signal.SIGCONT)
    alice.say("go on")
    assert alice.hear() == "unlocked"
    with Room(shared, f"{shared}/g", 1) as room:
        assert room.acquire(timeout=0) is not None


def test_everybody_of_the_group_meets_in_one_room(shared: str, children: ExitStack) -> None:
    """Many processes of two users: never more than one is inside."""

    def often(me: Child, room: Room) -> None:
        for _ in range(30):
            permit = room.acquire()
            assert permit
            mark = f"{shared}/inside"
            fd = os.open(mark, os.O_CREAT | os.O_EXCL, 0o660)
            os.close(fd)
            os.unlink(mark)
            permit.release()
        me.say("done")
        me.hear()

    crowd = [children.enter_context(member(user, shared, often)) for user in (ALICE, BOB) * 3]
    assert [child.hear() for child in crowd] == ["done"] * 6
    until(lambda: len(os.listdir(shared)) == 1 + len(crowd))  # the gate, and their bells
