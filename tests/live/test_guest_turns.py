"""Turns of a standing peer in which several things happen at once, or something raises: nothing is left half-way."""

from __future__ import annotations

import fcntl
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import pytest

from fairgate import sync
from fairgate.core.message import Message
from fairgate.live import guest_room, guests
from fairgate.live.background import FILE
from fairgate.live.engine_lock import EngineLock
from fairgate.live.gate import LiveGate
from fairgate.live.guest_room import MOST_AT_ONCE, GuestRoom
from fairgate.live.guests import Guests
from fairgate.live.ticket import Ticket
from fairgate.live.traffic import Traffic, TrafficOwner
from fairgate.room import guestbook
from fairgate.room.calls import is_stopped
from fairgate.room.changes import Changes
from fairgate.room.file import RoomFile
from fairgate.room.layout import PATIENT, PROMISED
from fairgate.room.room import Room
from tests.live.commands import SOON, WAITS, line, start, until
from tests.live.guests import GuestHost, ended


class Standing:
    """A standing peer in this process, and guests in this and in other ones."""

    def __init__(self, host: GuestHost, keeper: sync.Peer, guests: Guests) -> None:
        self.host = host
        self.keeper = keeper
        self.engine = keeper.engine
        self.guests = guests
        self.seed = self.engine.identity.address

    def on_loop(self, work: Callable[[], Any]) -> None:
        """Its loop does this and nothing else meanwhile."""
        done: Future[None] = Future()

        def call() -> None:
            try:
                done.set_result(work())
            except BaseException as wrong:
                done.set_exception(wrong)

        self.engine.loop.call_soon_threadsafe(call)
        done.result(SOON)

    def until_asked(self, count: int) -> None:
        until(lambda: len(self.engine.gates["gpu"].tickets) == count)


@pytest.fixture
def standing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Standing]:
    host = GuestHost(tmp_path)
    monkeypatch.setenv("FAIRGATE_DIR", host.env["FAIRGATE_DIR"])
    with sync.join(listen=host.seed) as keeper, Guests(keeper.engine, "fairgate") as guests:
        yield Standing(host, keeper, guests)


def enters(gate: sync.Semaphore) -> threading.Thread:
    """A thread that enters and leaves."""

    def enter() -> None:
        with gate:
            pass

    return threading.Thread(target=enter)


def test_a_newcomer_takes_the_turn_of_a_stopped_guest(standing: Standing) -> None:
    """The turn of a stopped guest comes before the peer has asked the cluster for the next one."""
    permit = standing.keeper.lock("gpu").acquire()
    assert permit is not None
    with sync.join(standing.seed) as one, sync.join(standing.seed) as two:
        stopped = start("run", "gpu", "--join", standing.seed, "--", "sh", "-c", WAITS, env=standing.host.env)
        with ended([stopped]):
            standing.until_asked(2)
            time.sleep(2 * PATIENT / 1e9)  # one that has waited for less is let in without a look
            stopped.send_signal(signal.SIGSTOP)
            until(lambda: is_stopped(stopped.pid))
            newcomer = enters(one.lock("gpu"))

            def at_once() -> None:
                newcomer.start()
                standing.host.until_waiting("gpu", 2)
                permit.release()

            standing.on_loop(at_once)
            newcomer.join(SOON)
            assert not newcomer.is_alive()
            last = two.lock("gpu").acquire(SOON)
            assert last is not None
            last.release()
            stopped.send_signal(signal.SIGCONT)
            assert line(stopped) == "in"


def test_a_grant_that_is_lost_before_the_guest_is_let_in_is_asked_for_again(standing: Standing) -> None:
    permit = standing.keeper.lock("gpu").acquire()
    assert permit is not None
    with sync.join(standing.seed) as peer:
        waiter = enters(peer.lock("gpu"))
        waiter.start()
        standing.until_asked(2)
        gate = standing.engine.gates["gpu"]
        until(lambda: not gate.unseated and not gate.has_census_under_way())  # so the release lets the guest in at once

        def at_once() -> None:
            permit.release()
            with standing.engine.step():
                assert gate.lose_all("this was to be lost")
                gate.lease_ended()

        standing.on_loop(at_once)
        waiter.join(SOON)
        assert not waiter.is_alive()


def fails_once(where: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """The next call of this method raises."""
    right, failed = getattr(where, name), threading.Event()

    def method(*given: Any) -> Any:
        if failed.is_set():
            return right(*given)
        failed.set()
        raise RuntimeError("this was to fail")

    monkeypatch.setattr(where, name, method)
    return failed


@pytest.fixture
def mistakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the tracebacks of this test go, which are wanted."""
    monkeypatch.setenv(FILE, str(tmp_path / "mistakes"))
    return tmp_path / "mistakes"


@pytest.mark.parametrize("what", ["gate", "sit", "hold", "let_go"])
def test_a_guest_is_not_forgotten_if_a_turn_raises(
    standing: Standing, mistakes: Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = standing.engine
    failed = fails_once(engine if what in ("gate", "sit") else engine.transport, what, monkeypatch)
    with sync.join(standing.seed) as peer:
        permit = peer.lock("gpu").acquire(SOON)
        assert permit is not None
        permit.release()
    assert failed.is_set()
    until(lambda: mistakes.exists() and "RuntimeError: this was to fail" in mistakes.read_text())
    assert engine.mistakes == 1


@pytest.mark.parametrize("what", ["hold", "let_go"])
def test_a_slot_is_not_forgotten_if_a_turn_raises(
    standing: Standing, mistakes: Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = standing.engine
    with sync.join(standing.seed) as peer:
        permit = peer.lock("gpu").acquire(SOON)
        assert permit is not None
        failed = fails_once(engine.transport, what, monkeypatch)
        permit.release()
        assert failed.wait(SOON)
        own = standing.keeper.lock("gpu").acquire(SOON)
        assert own is not None
        own.release()
    until(lambda: mistakes.exists() and "RuntimeError: this was to fail" in mistakes.read_text())
    assert engine.mistakes == 1


PLACES: dict[str, tuple[Any, str]] = {
    "room": (
        GuestRoom,
        "turn step wish check_cluster answer swap is_over tell_cluster in_step release opened gate usual ask "
        "watch look_later answered",
    ),
    "guestbook": (guestbook, "look note_ends note_new expire choose let_in has_asked next_end"),
    "gate": (LiveGate, "acquire again begin release end leave"),
    "changes": (Changes, "try_change to_ring tell ring"),
    "traffic": (Traffic, "wake"),
}


class Trap:
    """One call of this function in the loop of a peer raises, before or after it has done its work."""

    def __init__(self, where: Any, name: str, after: bool, monkeypatch: pytest.MonkeyPatch) -> None:
        self.thread = 0  # of the loop, from when on it is set
        self.sprung = False
        right = getattr(where, name)

        def method(*given: Any, **named: Any) -> Any:
            here = threading.get_ident() == self.thread and not self.sprung
            self.sprung = self.sprung or here
            if here and not after:
                raise RuntimeError("this was to fail")
            result = right(*given, **named)
            if here:
                raise RuntimeError("this was to fail")
            return result

        monkeypatch.setattr(where, name, method)


def last_of_those_asked_for(m: Any, change: Any, book: guestbook.Guestbook, ticket: int, until: int) -> int:
    """As `choose`, but the grant is nearly always another guest's, so that the two swap."""
    found = choose(m, change, book, ticket, until)
    others = [other for other, seat in book.asked.items() if other != ticket and guestbook.is_waiting(m, seat, other)]
    return others[-1] if found and others and ticket not in book.inside else found


choose = guestbook.choose


@pytest.mark.skipif(not guest_room.__file__.endswith(".py"), reason="compiled classes cannot be changed")
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("where", PLACES)
def test_whatever_raises_in_a_turn_is_made_up_for(
    standing: Standing, mistakes: Path, where: str, after: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All guests come in, and all slots come back."""
    monkeypatch.setattr(guests, "TICK_SECONDS", 0.02)
    owner, names = PLACES[where]
    for name in names.split():
        with monkeypatch.context() as patch, sync.join(standing.seed) as peer:
            patch.setattr(guestbook, "choose", last_of_those_asked_for)
            trap = Trap(owner, name, after, patch)
            assert turns(standing, peer.lock("gpu"), trap), f"{name}: a guest was forgotten"
            assert trap.sprung, f"{name} was not called"


def turns(standing: Standing, gate: sync.Semaphore, trap: Trap) -> bool:
    """Several guests wait and give up, and one asks in the turn in which another one leaves. Are all of them served?"""
    own = standing.keeper.lock("gpu").acquire(SOON)
    assert own is not None
    crowd = [enters(gate) for _ in range(3)]
    crowd[0].start()
    standing.host.until_waiting("gpu", 1)
    trap.thread = standing.engine.thread.ident or 0
    crowd[1].start()
    standing.host.until_waiting("gpu", 2)
    assert gate.acquire(0.01) is None
    own.release()
    permit = gate.acquire(SOON)
    if permit is None:
        return False

    def leave_and_ask() -> None:
        permit.release()
        view = standing.host.view("gpu")
        assert view is not None
        crowd[2].start()
        standing.host.until_waiting("gpu", 1 + len(view.waiting))

    standing.on_loop(leave_and_ask)
    for guest in crowd:
        guest.join(SOON)
    (room,) = standing.guests.rooms.values()
    until(lambda: not (standing.engine.gates["gpu"].tickets or room.requests or room.over))
    return not any(guest.is_alive() for guest in crowd)


def test_whatever_raises_in_the_loop_of_a_peer_is_counted(standing: Standing, mistakes: Path) -> None:
    engine = standing.engine

    def fail() -> None:
        raise RuntimeError("this was to fail")

    async def fail_later() -> None:
        fail()

    engine.loop.call_soon_threadsafe(fail)
    engine.loop.call_soon_threadsafe(engine.spawn, fail_later())
    until(lambda: mistakes.exists() and mistakes.read_text().count("RuntimeError: this was to fail") == 2)
    assert engine.mistakes == 2


class Shouting(LiveGate):
    """A gate in which each message lets these users in."""

    def __init__(self, traffic: Traffic, tickets: list[Ticket]) -> None:
        self.traffic = traffic
        self.users = tickets

    def on_message(self, dst: int, src: int, msg: Message) -> None:
        for ticket in self.users:
            self.traffic.tell(self, ticket)


def test_all_users_are_woken_if_waking_one_raises() -> None:
    raised: list[Exception] = []
    woken: list[int] = []

    class Owner:
        lock, gates, local = EngineLock(), dict[str, LiveGate](), deque[object]()

        def mistake(self, wrong: Exception) -> None:
            raised.append(wrong)

    traffic = Traffic(cast(TrafficOwner, Owner()), lambda peer, frame: None)

    def fail() -> bool:
        raise RuntimeError("this was to fail")

    def wake() -> bool:
        woken.append(traffic.quiet_thread)
        return True

    gate = Shouting(traffic, [Ticket(wake), Ticket(fail), Ticket(wake)])
    traffic.on_message(0, gate, 0, 0, cast(Message, None))
    assert woken == []
    traffic.on_quiet()
    assert woken == [threading.get_ident()] * 2
    assert [str(wrong) for wrong in raised] == ["this was to fail"]
    assert traffic.quiet_thread == 0


CROWD = 3 * MOST_AT_ONCE


def test_the_loop_goes_on_between_the_turns_of_a_crowd(standing: Standing, monkeypatch: pytest.MonkeyPatch) -> None:
    """It asks for a few guests at a time: the peer must renew its lease meanwhile."""
    monkeypatch.setattr(guest_room, "LONGEST_RUN", 0)
    permit = standing.keeper.lock("gpu").acquire()
    assert permit is not None
    gate = standing.engine.gates["gpu"]
    asked = [1]  # after every turn of the loop

    def note() -> None:
        if len(gate.tickets) <= CROWD:
            asked.append(len(gate.tickets))
            standing.engine.loop.call_soon(note)

    with sync.join(standing.seed) as peer:
        crowd = [enters(peer.lock("gpu")) for _ in range(CROWD)]

        def all_ask() -> None:
            for guest in crowd:
                guest.start()
            standing.host.until_waiting("gpu", CROWD)
            note()

        standing.on_loop(all_ask)
        standing.until_asked(1 + CROWD)
        permit.release()
        for guest in crowd:
            guest.join(SOON)
            assert not guest.is_alive()
    steps = [after - before for before, after in pairwise(asked)]
    assert max(steps) == MOST_AT_ONCE


def test_a_doorbell_does_not_look_at_known_rooms(standing: Standing, monkeypatch: pytest.MonkeyPatch) -> None:
    """With many rooms, each guest that opens another one would cost more than the one before."""
    monkeypatch.setattr(guests, "TICK_SECONDS", 1000)
    with sync.join(standing.seed) as peer:
        peer.lock("a").hold(SOON).release()  # after that, there is no tick
        looks: list[str] = []
        monkeypatch.setattr(standing.guests, "forget_rooms", lambda: looks.append("at all rooms"))
        until(
            lambda: (
                standing.guests.ticker is not None and standing.engine.loop.time() + 500 < standing.guests.ticker.when()
            )
        )
        looks.clear()
        for name in "bcde":
            peer.lock(name).hold(SOON).release()
        assert looks == []


def test_the_loop_pauses_between_looks_for_rooms(standing: Standing, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guests, "PAUSE", 1_000_000)
    found = standing.guests
    standing.on_loop(found.rung)
    until(lambda: found.look is None)
    standing.on_loop(found.rung)
    for _ in range(3):  # turns of the loop
        standing.on_loop(lambda: None)
    assert found.look is not None


def test_a_room_whose_file_is_locked_does_not_hold_the_loop_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host = GuestHost(tmp_path)
    monkeypatch.setenv("FAIRGATE_DIR", host.env["FAIRGATE_DIR"])
    with sync.join(listen=host.seed) as keeper:
        guests = Guests(keeper.engine, "fairgate")
        with Room(host.rooms, "gpu", 1, cluster=True) as room, open(room.file.path) as owner:
            fcntl.flock(owner, fcntl.LOCK_EX)
            entering = threading.Thread(target=guests.__enter__)
            entering.start()
            entering.join(SOON)
            stuck = entering.is_alive()
            fcntl.flock(owner, fcntl.LOCK_UN)
            entering.join(SOON)
            assert not stuck
            permit = room.acquire(SOON)
            assert permit is not None
            permit.release()
        guests.__exit__()


def test_promises_are_renewed_while_the_file_of_a_room_is_locked(standing: Standing) -> None:
    """A crowd could keep the lock from the peer for longer than its lease."""
    with sync.join(standing.seed) as peer, peer.lock("gpu").hold(SOON):
        (room,) = standing.guests.rooms.values()
        (seat,) = room.book.inside.values()
        table = room.desk.file
        with open(table.path) as owner:
            fcntl.flock(owner, fcntl.LOCK_EX)
            before = table.m[seat + PROMISED]
            until(lambda: table.m[seat + PROMISED] > before)


def test_the_loop_goes_on_while_it_is_looked_up_who_has_the_lock(
    standing: Standing, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked, go = threading.Event(), threading.Event()

    def look(file: RoomFile) -> None:
        looked.set()
        go.wait(SOON)

    monkeypatch.setattr(guest_room, "continue_owner", look)
    monkeypatch.setattr(guest_room, "RESCUE_AFTER", 0)
    with sync.join(standing.seed) as peer, peer.lock("gpu").hold(SOON):
        (room,) = standing.guests.rooms.values()
        with open(room.desk.file.path) as owner:
            fcntl.flock(owner, fcntl.LOCK_EX)
            room.loop.call_soon_threadsafe(room.look_at_all)
            assert looked.wait(SOON)
            standing.on_loop(lambda: None)
            go.set()
