"""How requests end early: interrupts, signal handlers, forks, the end of a process, and gates that are closed."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import pytest

from fairgate.errors import BadInput, ForkedPeer, GateClosed, ReentrantCall
from fairgate.room import links
from fairgate.room.calls import DEAD, clock, open_to_ring, read_tickets
from fairgate.room.layout import DEADLINE, DIRTY, GRANTED_BY, IS_A_ROOM, MAGIC, PROMISED
from fairgate.room.links import CorruptTable
from fairgate.room.permit import Permit
from fairgate.room.room import Room
from fairgate.room.table import Change
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


def test_a_request_that_comes_while_its_room_closes_is_refused(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with Room(folder, "g", 3) as other:
        room = Room(folder, "g", 3)
        held = [room.acquire(), room.acquire()]
        assert held[0]
        held[0].release()  # its bell is free for the next request
        change = room.change

        def late(step: Callable[[Change], None]) -> None:
            """Closing has found out which bells are in use."""
            with pytest.raises(GateClosed, match="the end"):
                room.acquire(timeout=0)
            change(step)

        monkeypatch.setattr(room, "change", late)
        room.close("the end")
        assert other.requests() == []


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


def test_children_of_a_process_whose_threads_are_busy_do_not_keep_it_alive(folder: str, children: ExitStack) -> None:
    def visit() -> None:
        while True:
            with Room(folder, "g", 4) as room:
                permit = room.acquire()
                assert permit
                permit.release()

    def parent(me: Child) -> None:
        sys.setswitchinterval(1e-6)
        for _ in range(4):
            threading.Thread(target=visit, daemon=True).start()
        for _ in range(40):
            if os.fork() == 0:
                me.say(os.getpid())  # by now it has closed what it inherited
                time.sleep(60)
                os._exit(0)
        me.hear()

    busy = children.enter_context(Child(parent))
    forked = [int(busy.hear()) for _ in range(40)]
    try:
        busy.end()
        assert {open_to_ring(f"{folder}/{name}") for name in bells(folder)} <= {DEAD}
        with Room(folder, "g", 4) as room:
            assert all(room.acquire(timeout=0) for _ in range(4))
    finally:
        for pid in forked:
            os.kill(pid, signal.SIGKILL)


def test_a_process_ends_while_its_threads_wait(folder: str) -> None:
    with Room(folder, "g", 1) as room:
        permit = room.acquire()
        assert permit
        script = (
            "import sys, threading, time\n"
            "from fairgate.room.room import Room\n"
            "room = Room(sys.argv[1], 'g', 1)\n"
            "for _ in range(5):\n"
            "    threading.Thread(target=room.acquire, daemon=True).start()\n"
            "while len(room.requests()) < 6:\n"
            "    time.sleep(0.01)\n"
        )
        command = [sys.executable, "-c", script, folder]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
        assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
        assert len(room.requests()) == 1
        assert len(bells(folder)) == 1


# Interrupts and signal handlers in the middle of a change.


armed: list[bool] = []


def interrupt(*_: object) -> None:
    if armed:
        raise KeyboardInterrupt


def is_interrupted(seconds: float, body: Callable[[], None]) -> bool:
    """Ctrl-C comes this late, unless the body ends before."""
    early = False
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        armed.append(True)
        signal.setitimer(signal.ITIMER_REAL, seconds)
        body()
        armed.clear()
    except KeyboardInterrupt:
        armed.clear()
        early = True
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)
    return early


def test_ctrl_c_at_any_moment_leaves_nothing_behind(folder: str) -> None:
    rng = random.Random(1)
    early = 0
    permit: Permit | None = None

    def visit() -> None:
        nonlocal permit
        permit = room.acquire(timeout=0)
        assert permit
        permit.release()

    with Room(folder, "g", 1) as room, Room(folder, "g", 1) as other:
        for _ in range(1500):
            permit = None
            early += is_interrupted(1e-6 + rng.random() ** 3 * 2e-4, visit)
            assert not other.file.m[DIRTY]
            if permit is not None:
                permit.release()
            assert other.requests() == []
        assert early > 20
        assert room.acquire(timeout=0) is not None


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # a file in /proc that was just opened
def test_ctrl_c_at_any_moment_of_a_release_wakes_the_next_waiter(folder: str) -> None:
    rng = random.Random(2)
    early = 0
    with Room(folder, "g", 1) as room, Room(folder, "g", 1) as other:
        waiter = other.some_visit()
        for _ in range(700):
            permit = room.acquire(timeout=0)
            assert permit
            waiter.want(1, None, "")
            assert not other.change(waiter.ask)
            early += is_interrupted(1e-6 + rng.random() ** 3 * 1e-4, permit.release)
            permit.release()
            assert waiter.ticket in read_tickets(waiter.bell.fd)
            other.change(waiter.leave)
        assert early > 20


def test_a_change_that_is_refused_wakes_those_whom_it_let_in(folder: str) -> None:
    with Room(folder, "g", 1) as room:
        permit = room.acquire()
        assert permit
        waiter = room.some_visit()
        assert not room.change(waiter.ask)

        def refused(change: Change) -> None:
            permit.run(change)
            raise BadInput("no")

        with pytest.raises(BadInput, match="no"):
            room.change(refused)
        assert waiter.ticket in read_tickets(waiter.bell.fd)


def test_a_change_that_fails_takes_its_request_back(folder: str) -> None:
    with Room(folder, "g", 1) as room:

        def failed(change: Change) -> None:
            room.some_visit().ask(change)
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            room.change(failed)
        assert room.requests() == []


def test_a_change_that_is_interrupted_leaves_a_whole_table(folder: str) -> None:
    with Room(folder, "g", 1) as room:
        m = room.file.m

        def interrupted(change: Change) -> None:
            m[DIRTY] = 1
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            room.change(interrupted)
        assert not m[DIRTY]


def test_a_request_that_was_not_made_cannot_be_ended(folder: str) -> None:
    """As if Ctrl-C comes before a second request with the same bell."""
    with Room(folder, "g", 1) as room:
        visit = room.some_visit()
        visit.want(1, None, "")
        assert room.change(visit)
        room.change(visit.leave)
        visit.want(1, None, "")
        room.change(visit.leave)
        assert room.file.m[MAGIC] == IS_A_ROOM


def test_a_change_that_is_repeated_makes_one_request(folder: str) -> None:
    attempts = []
    with Room(folder, "g", 1) as room:
        visit = room.some_visit()

        def damaged(change: Change) -> None:
            visit.run(change)
            attempts.append(visit.ticket)
            if len(attempts) == 1:
                raise CorruptTable

        room.change(damaged)
        assert len(attempts) == 2
        assert [each.ticket for each in room.requests()] == attempts[1:]


@contextmanager
def handled(handler: Callable[[], object]) -> Iterator[None]:
    before = signal.signal(signal.SIGUSR1, lambda *_: handler() and None)
    try:
        yield
    finally:
        signal.signal(signal.SIGUSR1, before)


def raise_signal(change: Change) -> None:
    signal.raise_signal(signal.SIGUSR1)


def test_a_signal_handler_releases_in_the_middle_of_a_change(folder: str) -> None:
    with Room(folder, "g", 2) as room:
        permit, other = room.acquire(), room.acquire()
        assert permit
        assert other
        with handled(permit.release):
            room.change(raise_signal)
        assert permit.released
        assert [each.slots for each in room.requests()] == [other.slots]
        with handled(other.release):
            assert room.acquire(timeout=5) is not None


def test_a_signal_handler_cannot_acquire_in_the_middle_of_a_change(folder: str) -> None:
    with Room(folder, "g", 1) as room:
        with handled(lambda: room.acquire(timeout=0)), pytest.raises(ReentrantCall, match="can only release permits"):
            room.change(raise_signal)
        assert room.requests() == []
        assert room.acquire(timeout=0) is not None


def test_a_signal_handler_closes_the_room_in_the_middle_of_a_change(folder: str) -> None:
    room = Room(folder, "g", 1)
    assert room.acquire() is not None
    with handled(room.close):
        room.change(raise_signal)
    assert room.is_closed()
    assert bells(folder) == []


def test_a_signal_handler_uses_the_gate_while_its_thread_waits(folder: str) -> None:
    with Room(folder, "g", 1) as room:
        permit = room.acquire()
        assert permit
        with handled(permit.release):
            timer = threading.Timer(0.05, lambda: os.kill(os.getpid(), signal.SIGUSR1))
            timer.start()
            assert room.acquire(timeout=5) is not None
            timer.join()


def test_the_reason_of_a_loss_is_what_ended_the_permit_not_what_came_later(folder: str) -> None:
    """Its leases go on after it was revoked, and may be over when its user asks for the reason."""
    with Room(folder, "g", 3) as room:
        m = room.file.m
        for since_revoked, ends, told in (
            ((), (DEADLINE,), "it was revoked"),
            ((GRANTED_BY,), (PROMISED,), "the standing peer of this host has left the cluster"),
            ((GRANTED_BY,), (PROMISED, DEADLINE), "the standing peer of this host has left the cluster"),
        ):
            permit = room.acquire(0)
            assert permit
            room.revoke(permit.slots[0])
            for word in since_revoked:
                m[permit.seat + word] = 7  # and the room's peer is another one, or none
            for word in ends:
                m[permit.seat + word] = clock()
            assert permit.why_lost() == told


def test_the_reason_of_a_loss_is_the_lease_that_was_over_first(folder: str) -> None:
    with Room(folder, "g", 2) as room:
        m = room.file.m
        for first, later, told in (
            (DEADLINE, PROMISED, "its lease has expired"),
            (PROMISED, DEADLINE, "the peer of this host has not renewed its lease in the cluster"),
        ):
            permit = room.acquire(0)
            assert permit
            m[permit.seat + first] = clock()
            room.revoke(permit.slots[0])
            m[permit.seat + later] = clock()
            assert permit.why_lost() == told
