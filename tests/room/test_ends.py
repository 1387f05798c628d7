"""How requests end early: interrupts, signal handlers, forks, the end of a process, and gates that are closed."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import ExitStack

import pytest

from fairgate.errors import ForkedPeer, GateClosed
from fairgate.room import links
from fairgate.room.room import Room
from tests.room.children import Child, bells, waits


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
