"""Processes in containers that share a directory: they do not see each other, and take part by their bells alone."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import ExitStack

from fairgate.room.calls import is_stopped
from fairgate.room.layout import RESCUED, STOP
from fairgate.room.room import Room
from fairgate.room.system import name_in
from fairgate.room.table import Change
from tests.room.children import Child, bells, until, visitor, waits
from tests.room.containers import Contained
from tests.room.others import ALICE, BOB, TEAM, become, needs_root, open_folder

pytestmark = needs_root


def test_two_containers_and_their_host_take_turns(folder: str, children: ExitStack) -> None:
    with Room(folder, "g", 1) as room:
        permit = room.acquire()
        line: list[Child] = []
        for number, kind in enumerate((Contained, Child, Contained, Child, Contained)):
            line.append(children.enter_context(kind(visitor(folder, 1))))
            assert line[-1].hear() == "asks"
            waits(room, number + 1)
        assert permit
        permit.release()
        for child in line:
            assert child.hear() == "0"
            child.say("leave")
            assert child.hear() == "left"


def test_ids_in_a_container_mean_nothing_outside(folder: str, children: ExitStack) -> None:
    """Both containers have a process 2, and so has their host."""
    inside = [children.enter_context(Contained(visitor(folder, 2))) for _ in range(2)]
    for child in inside:
        assert child.hear() == "asks"
        child.hear()
    with Room(folder, "g", 2) as room:
        requests = room.requests()
        assert [each.pid for each in requests] == [2, 2]
        assert len({each.namespace for each in requests}) == 2
        assert room.acquire(timeout=0.2) is None


def test_a_killed_holder_in_another_container_frees_its_slot(folder: str, children: ExitStack) -> None:
    holder = children.enter_context(Contained(visitor(folder, 1)))
    assert [holder.hear(), holder.hear()] == ["asks", "0"]
    waiter = children.enter_context(Contained(visitor(folder, 1)))
    assert waiter.hear() == "asks"
    with Room(folder, "g", 1) as room:
        waits(room, 1)
        holder.kill()
        assert waiter.hear(1.0) == "0"
        waiter.kill()
        assert room.acquire(timeout=1) is not None
        assert len(bells(folder)) == 1


def test_a_killed_waiter_in_another_container_is_passed_over(folder: str, children: ExitStack) -> None:
    with Room(folder, "g", 1) as room:
        permit = room.acquire()
        first = children.enter_context(Contained(visitor(folder, 1)))
        waits(room, 1)
        second = children.enter_context(Contained(visitor(folder, 1)))
        waits(room, 2)
        first.kill()
        assert permit
        permit.release()
        assert [second.hear(), second.hear(1.0)] == ["asks", "0"]


def test_a_stopped_waiter_in_another_container_counts_as_alive(folder: str, children: ExitStack) -> None:
    """Nobody else sees that it is stopped: it is let in, and keeps its slot until it continues."""
    with Room(folder, "g", 1) as room:
        permit = room.acquire()
        stopped = children.enter_context(Contained(visitor(folder, 1)))
        assert stopped.hear() == "asks"
        waits(room, 1)
        other = children.enter_context(Contained(visitor(folder, 1)))
        assert other.hear() == "asks"
        waits(room, 2)
        stopped.send(signal.SIGSTOP)
        until(lambda: is_stopped(stopped.inner))
        assert permit
        permit.release()
        assert other.is_silent()
        stopped.send(signal.SIGCONT)
        assert stopped.hear() == "0"
        stopped.say("leave")
        assert other.hear() == "0"


def test_a_stopped_waiter_is_passed_over_within_its_container(folder: str, children: ExitStack) -> None:
    """The process that sees it is the one behind it; the holder is elsewhere."""

    def two(me: Child) -> None:
        for name in ("first", "second"):
            if os.fork() == 0:
                room = Room(folder, "g", 1)
                me.say(f"{name} {os.getpid()}")
                assert room.acquire()
                me.say(f"{name} is inside")
                signal.pause()
            me.hear()
        os.kill(3, signal.SIGSTOP)
        me.say("stopped")
        me.hear()

    with Room(folder, "g", 1) as room:
        permit = room.acquire()
        container = children.enter_context(Contained(two))
        assert container.hear() == "first 3"
        waits(room, 1)
        container.say("start")
        assert container.hear() == "second 4"
        waits(room, 2)
        container.say("stop")
        assert container.hear() == "stopped"
        until(lambda: [each.stopped for each in room.requests() if not each.inside] == [True, False])
        assert permit
        permit.release()
        assert container.hear() == "second is inside"


# The lock.


def keeper(folder: str) -> Callable[[Child], None]:
    """Has the lock until it is told to go on."""

    def work(me: Child) -> None:
        room = Room(folder, "g", 1)

        def hold(change: Change) -> None:
            me.say("locked")
            me.hear()

        room.change(hold)
        me.say("unlocked")
        me.hear()

    return work


def test_a_process_that_is_stopped_with_the_lock_in_a_container_is_continued(folder: str, children: ExitStack) -> None:
    """Its host sees it under another id, and continues it. It knows that it is meant, and stops again."""
    child = children.enter_context(Contained(keeper(folder)))
    assert child.hear() == "locked"
    child.send(signal.SIGSTOP)
    until(lambda: is_stopped(child.inner))
    child.say("go on")
    with Room(folder, "g", 1) as room:
        assert room.acquire(timeout=5) is not None
        assert room.file.m[RESCUED] == 1
    until(lambda: is_stopped(child.inner))
    assert child.is_silent()
    child.send(signal.SIGCONT)
    assert child.hear() == "unlocked"


def test_a_process_that_cannot_be_seen_is_waited_for(folder: str, children: ExitStack) -> None:
    """A container sees neither the process of its host that is stopped with the lock, nor continues another one."""
    holder = children.enter_context(Child(keeper(folder)))
    assert holder.hear() == "locked"
    holder.stop()
    holder.say("go on")
    visiting = children.enter_context(Contained(visitor(folder, 1)))
    assert visiting.is_silent()
    holder.send(signal.SIGCONT)
    assert [visiting.hear(), visiting.hear()] == ["asks", "0"]


def test_no_process_is_taken_for_one_of_another_container(folder: str, children: ExitStack) -> None:
    """The word that tells a process to stop again names its namespace, too."""
    with Room(folder, "g", 1) as room:
        room.file.m[STOP] = name_in(room.desk.senses.namespace + 1, os.getpid())
        assert room.acquire(timeout=0) is not None  # this process goes on
        assert not room.file.m[STOP]


# Under hidepid, processes see only those of their own user.


def test_processes_that_proc_hides_take_part(children: ExitStack) -> None:
    """All of them are in one container, each as another user."""

    def two_users(me: Child) -> None:
        for number, user in enumerate((ALICE, BOB)):
            if os.fork() == 0:
                become(user, [TEAM])
                hidden = not os.path.exists("/proc/1/stat")
                room = Room(folder, f"{folder}/g", 1)
                me.say(f"{number} {hidden}")
                assert room.acquire()
                me.say(f"{number} is inside")
                signal.pause()
            me.hear()
        os.kill(3, signal.SIGKILL)
        me.hear()

    folder = children.enter_context(open_folder())
    os.chown(folder, 0, TEAM)
    os.chmod(folder, 0o2770)
    container = children.enter_context(Contained(two_users, "hidepid=2"))
    assert container.hear() == "0 True"
    assert container.hear() == "0 is inside"
    container.say("start")
    assert container.hear() == "1 True"
    assert container.is_silent()
    container.say("kill")
    assert container.hear(1.0) == "1 is inside"
