"""A waiting thread reads from the sockets, and passes on what is for others."""

from __future__ import annotations

import asyncio
import gc
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median

import pytest

from fairgate import sync
from fairgate.errors import GateClosed, ReentrantCall
from fairgate.live.gate import RETAKES
from fairgate.live.ticket import INSIDE, Ticket
from fairgate.net import reader
from fairgate.net.address import parse_address
from fairgate.net.codec import Frame, encode
from fairgate.net.reader import Reader
from fairgate.net.system import Latch, once
from tests.live import peers
from tests.live.gates import SOON, all_are_free_now, busy, live
from tests.live.kinds import Kind
from tests.live.peers import Stranger, close_all, hello, lines


def reader_of(peer: sync.Peer) -> Reader:
    found = peer.engine.transport.reader
    assert found is not None
    return found


def has_reading_user(peer: sync.Peer) -> bool:
    return reader_of(peer).user != 0


def has_connections(peer: sync.Peer, count: int) -> bool:
    return len(peer.engine.transport.connections) == count


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SOON
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


@contextmanager
def waiting(gate: sync.Semaphore, outcome: list[object]) -> Iterator[threading.Thread]:
    """Starts a thread that acquires, and appends its permit or its exception to `outcome`."""

    def wait() -> None:
        try:
            outcome.append(gate.acquire(SOON))
        except BaseException as wrong:
            outcome.append(wrong)

    before = len(live(gate).tickets)
    thread = threading.Thread(target=wait)
    thread.start()
    until(lambda: len(live(gate).tickets) > before)
    yield thread
    thread.join(2 * SOON)
    assert not thread.is_alive()


def test_a_waiting_thread_reads(cluster: Kind) -> None:
    with cluster.sync_join() as one, cluster.sync_join() as two:
        permit = one.lock("gate").hold(SOON)
        outcome: list[object] = []
        with waiting(two.lock("gate"), outcome) as thread:
            until(lambda: reader_of(two).user == thread.ident)
            assert reader_of(two).user != two.engine.thread.ident
            permit.release()
        assert isinstance(outcome[0], sync.Permit)
        assert reader_of(two).user == 0


def test_the_reading_thread_wakes_other_waiters(cluster: Kind) -> None:
    with cluster.sync_join() as one, cluster.sync_join() as two:
        first, second = one.lock("first").hold(SOON), one.lock("second").hold(SOON)
        reads: list[object] = []
        sleeps: list[object] = []
        with waiting(two.lock("first"), reads) as reading:
            until(lambda: reader_of(two).user == reading.ident)
            with waiting(two.lock("second"), sleeps):
                second.release()
            assert isinstance(sleeps[0], sync.Permit)
            assert not reads
            first.release()
        assert isinstance(reads[0], sync.Permit)


def test_frames_for_the_engine_reach_it(cluster: Kind) -> None:
    """Queries of other peers, while a user's thread reads."""
    with cluster.sync_join() as one, cluster.sync_join() as two:
        gate = one.lock("gate")
        two.lock("gate").hold(SOON).release()  # now they are connected, and waiting threads read
        outcome: list[object] = []
        with gate.hold(SOON) as permit, waiting(two.lock("gate"), outcome):
            until(lambda: reader_of(two).user != 0)
            until(lambda: len(gate.waiters()) == 1)  # queries `two`
            permit.release()


def test_the_loop_reads_again_when_the_thread_stops(cluster: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "LOOK_SECONDS", 2 * SOON)
    with cluster.sync_join() as one, cluster.sync_join() as two:
        gate = one.lock("gate")
        with gate.hold(SOON):
            assert two.lock("gate").acquire(0.05) is None
            begin = time.monotonic()
            assert gate.waiters() == []  # queries `two`
        with two.lock("gate").hold(SOON):
            assert len(gate.holders()) == 1
        assert time.monotonic() - begin < SOON


def test_a_grant_by_another_thread_wakes_the_reading_thread(cluster: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without any message from another peer that it could read. Heartbeats wake it too, but only every 250 ms."""
    monkeypatch.setattr(reader, "LOOK_SECONDS", 4 * SOON)
    waits = []
    with cluster.sync_join() as peer:
        gate = peer.lock("gate")
        for _ in range(9):
            outcome: list[object] = []
            with gate.hold(SOON) as permit, waiting(gate, outcome):
                until(lambda: len(gate.waiters()) == 1)  # its seat is in a view
                until(lambda: has_reading_user(peer))
                permit.release()
                released = time.monotonic()
            waits.append(time.monotonic() - released)
            assert isinstance(outcome[0], sync.Permit)
            outcome[0].release()
    assert median(waits) < 0.05


def test_closing_the_peer_wakes_the_reading_thread(cluster: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "LOOK_SECONDS", 2 * SOON)
    with cluster.sync_join() as one, cluster.sync_join() as two, one.lock("gate").hold(SOON):
        outcome: list[object] = []
        with waiting(two.lock("gate"), outcome):
            until(lambda: reader_of(two).user != 0)
            two.close()
        assert isinstance(outcome[0], GateClosed)


def test_a_request_is_heard_after_a_limited_number_of_retakes(cluster: Kind) -> None:
    """Even if only the entering thread could read it."""
    with cluster.sync_join() as one, cluster.sync_join() as two:
        here, there = one.lock("gate"), two.lock("gate")
        for gate in (there, here):
            gate.hold(SOON).release()
        outcome: list[object] = []
        with busy(one), waiting(there, outcome):
            with two.engine.user_lock:
                pass  # now its request has been sent
            for _ in range(RETAKES):
                if live(here).kept is not None:
                    here.hold(SOON).release()
            assert live(here).kept is None
        assert isinstance(outcome[0], sync.Permit)


def test_waiters_are_woken_after_everything_that_arrived_was_read(
    cluster: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two tokens arrive in one piece: the waiter that is woken first finds both granted."""
    monkeypatch.setattr(reader, "LOOK_SECONDS", 2 * SOON)  # so that the periodic look does not hide a failure
    gaps = []
    with cluster.sync_join() as one, cluster.sync_join() as two:
        ours, theirs = [[peer.lock(name) for name in ("first", "second")] for peer in (one, two)]
        for gate in theirs:
            gate.hold(SOON).release()
        for _ in range(9):
            (first, states), (second, later) = woken_by_two_tokens(one, ours, two, theirs)
            assert states == later == [INSIDE, INSIDE]
            gaps.append(second - first)
    assert median(gaps) < 0.01  # the next message, an acknowledgement, would lead to the second one 50 ms later


def woken_by_two_tokens(
    one: sync.Peer, ours: Sequence[sync.Semaphore], two: sync.Peer, theirs: Sequence[sync.Semaphore]
) -> list[tuple[float, list[str]]]:
    """When the two waiters are woken, and the states of both then."""
    permits = [gate.hold(SOON) for gate in ours]
    told: list[tuple[float, list[str]]] = []

    def wake() -> bool:
        told.append((time.monotonic(), [ticket.state for ticket in tickets]))
        return True

    tickets = [Ticket(wake), Ticket(wake)]
    for gate, ticket in zip(theirs, tickets, strict=True):
        two.engine.of_user(live(gate), live(gate).acquire, ticket)
    until(lambda: [len(gate.waiters()) for gate in ours] == [1, 1])

    def release() -> None:
        with one.engine.step():
            for gate, permit in zip(ours, permits, strict=True):
                live(gate).release(permit.held.ticket)  # type: ignore[attr-defined]

    one.engine.loop.call_soon_threadsafe(release)  # everything sent in one step leaves in one write
    until(lambda: len(told) == 2)
    for gate, ticket in zip(theirs, tickets, strict=True):
        two.engine.release(live(gate), ticket)
    return told


def test_no_file_descriptors_leak(cluster: Kind) -> None:
    with cluster.sync_join() as one:
        permit = one.lock("gate").hold(SOON)
        first = 0
        for _ in range(4):
            with cluster.sync_join() as two:
                outcome: list[object] = []
                with waiting(two.lock("gate"), outcome):
                    until(partial(has_reading_user, two))
                    two.close()
            del two, outcome
            gc.collect()
            for peer in (one, cluster.keeper):  # they are connected to each other
                assert peer is not None
                until(partial(has_connections, peer, 1))
            first = first or open_files()
            until(partial(has_at_most, first))
        permit.release()


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def has_at_most(files: int) -> bool:
    return open_files() <= files


@pytest.mark.parametrize(
    "said", [b"\xff" * 9, encode(("m", 1, 2)), encode(("m", "gate", 1, 2, ())), encode(("nonsense",)), b""]
)
def test_an_invalid_frame_costs_its_sender_the_connection(
    cluster: Kind, caplog: pytest.LogCaptureFixture, said: bytes
) -> None:
    """Whichever thread reads it, waiters are not affected."""
    with cluster.sync_join() as one, cluster.sync_join() as two:
        permit = one.lock("gate").hold(SOON)
        outcome: list[object] = []
        with waiting(two.lock("gate"), outcome):
            until(lambda: reader_of(two).user != 0)
            asyncio.run(be_rude(two, said))
            assert not outcome
            permit.release()
        assert isinstance(outcome[0], sync.Permit)
    warnings = [line for line in lines(caplog.records) if "77" in line]
    assert len(warnings) == (1 if said else 0), warnings  # a clean disconnect is not logged


def test_a_request_with_an_invalid_tree_index_costs_the_connection(cluster: Kind) -> None:
    """Compiled protocols check list indices only where they are told to."""
    with cluster.sync_join() as one, cluster.sync_join() as two:
        permit = one.lock("gate").hold(SOON)
        outcome: list[object] = []
        gate = two.lock("gate")
        with waiting(gate, outcome):
            [(seat, node)] = live(gate).nodes.items()
            until(lambda: node.epoch > 0)  # earlier messages would be queued
            said = ("rg.message", node.epoch, (), ("bv.request", 10_000_000, 1, 1))
            asyncio.run(be_rude(two, encode(("m", "gate", seat, 1, said))))
            permit.release()
        assert isinstance(outcome[0], sync.Permit)


async def be_rude(peer: sync.Peer, said: bytes) -> None:
    async with asyncio.timeout(SOON):
        stranger = await Stranger.at(parse_address(peer.engine.identity.address))
        stranger.say(hello(77, "fairgate"))
        while not stranger.decoder.feed(await stranger.reader.read(1000)):
            pass
        stranger.say(encode(("ready",)))
        await peers.until(lambda: 77 in peer.engine.transport.up)
        if said:
            stranger.say(said)
            await stranger.answers()  # until the connection is closed
        await stranger.close()
        await peers.until(lambda: 77 not in peer.engine.transport.up)


@pytest.mark.parametrize("fast", [False, True], ids=["asyncio", "uvloop"])
def test_two_reading_threads_neither_duplicate_nor_reorder(fast: bool, tmp_path: Path) -> None:
    if fast:
        pytest.importorskip("uvloop")
    count = 5_000
    by: dict[str, list[Frame]] = {"loop": [], "user": []}
    order: list[int] = []
    over = threading.Event()

    def elsewhere(peer: int, frame: Frame) -> bool:
        by["user"].append(frame)
        order.append(frame[0])
        return True

    async def main() -> None:
        one, two = peers.Peer(1, elsewhere=elsewhere), peers.Peer(2)

        def on_frame(peer: int, frame: Frame) -> None:
            by["loop"].append(frame)
            order.append(frame[0])

        one.transport.on_frame = on_frame
        two.transport.dial(one.listen(tmp_path))
        await two.until("up", 1)

        def read() -> None:
            assert one.transport.reader is not None
            while not over.is_set():
                one.transport.reader.read(0.01)

        user = asyncio.create_task(asyncio.to_thread(read))
        try:
            for number in range(count):
                assert two.transport.send(1, (number, "x" * (number % 3000)))
                if number % 100 == 0:
                    await asyncio.sleep(0)
            await peers.until(lambda: len(order) == count)
        finally:
            over.set()
            await user
        await close_all(one, two)

    peers.run(main(), fast)
    assert order == list(range(count))
    assert by["loop"]
    assert by["user"]


def test_only_one_thread_handles_a_piece_at_a_time(tmp_path: Path) -> None:
    order: list[int] = []
    taking, passed_by = threading.Event(), threading.Event()

    def elsewhere(peer: int, frame: Frame) -> bool:
        taking.set()
        passed_by.wait(0.1)  # long enough for the loop's thread, if nothing blocked it
        order.append(frame[0])
        return True

    def on_frame(peer: int, frame: Frame) -> None:
        order.append(frame[0])
        passed_by.set()

    async def main() -> None:
        one, two = peers.Peer(1, elsewhere=elsewhere), peers.Peer(2)
        one.transport.on_frame = on_frame
        two.transport.dial(one.listen(tmp_path))
        found = one.transport.reader
        assert found is not None
        await peers.until(lambda: bool(found.connections))
        found.shown.hide(found.inner, True)
        user = asyncio.create_task(asyncio.to_thread(found.read, SOON))
        for number, size in enumerate([100, 4096]):  # the first piece contains one frame and part of the next
            two.transport.send(1, (number, "x" * size))
        await peers.until(taking.is_set)
        found.look()
        await user
        await close_all(one, two)

    peers.run(main())
    assert order == [0, 1]


HANDLER = """
import signal, sys
from fairgate import ReentrantCall, sync

with sync.join(sys.argv[1]) as peer:
    outer, inner = peer.lock("outer"), peer.lock("inner")
    inner.hold(20).release()  # it has a seat, so only a message can grant a permit

    def on_signal(*_):
        try:
            permit = inner.acquire(20)
        except ReentrantCall:
            print("again", flush=True)
        else:
            permit.release()
            print("was let in", flush=True)

    signal.signal(signal.SIGUSR1, on_signal)
    print("ready", flush=True)
    outer.hold(20).release()
    print("and out", flush=True)
"""


def test_a_signal_handler_may_acquire_too(cluster: Kind) -> None:
    """Even in the reading thread: the loop reads meanwhile. Unless the thread was in the middle of a step."""
    with cluster.sync_join() as peer:
        outer = peer.lock("outer").hold(SOON)
        script = subprocess.Popen([sys.executable, "-c", HANDLER, *cluster.seeds], stdout=subprocess.PIPE, text=True)
        try:
            assert script.stdout is not None
            assert script.stdout.readline() == "ready\n"
            inner = peer.lock("inner").hold(SOON)
            until(lambda: len(peer.lock("outer").waiters()) == 1)
            said = select.poll()
            said.register(script.stdout, select.POLLIN)
            waits = False
            while not waits:
                script.send_signal(signal.SIGUSR1)
                until(lambda: len(peer.lock("inner").waiters()) == 1 or bool(said.poll(0)))
                waits = not said.poll(0)
                assert waits or script.stdout.readline() == "again\n"
            inner.release()
            assert script.stdout.readline() == "was let in\n"
            outer.release()
            assert script.stdout.readline() == "and out\n"
            assert script.wait(SOON) == 0
        finally:
            script.kill()
            script.communicate()


@pytest.mark.parametrize("where", ["step", "reading", "one look"])
def test_a_signal_handler_in_the_middle_of_a_step(cluster: Kind, where: str) -> None:
    """It would wait for itself, or for what only its thread can read."""
    with cluster.sync_join() as one, cluster.sync_join() as two:
        gate = two.lock("gate")
        gate.hold(SOON).release()
        reader = reader_of(two)
        outer, inner = {
            "step": (Latch(), two.engine.user_lock),
            "reading": (reader.place, reader.reading),
            "one look": (Latch(), reader.reading),
        }[where]
        with one.lock("gate").hold(SOON):
            for _ in once(outer):
                for _ in once(inner):
                    with pytest.raises(ReentrantCall, match="signal handler"):
                        gate.acquire(SOON)
            assert gate.waiters() == []
        all_are_free_now(gate)


SIGNALLED = """
import os, signal, sys
from fairgate import sync

with sync.join(sys.argv[1]) as peer:
    signal.signal(signal.SIGUSR1, lambda *_: os.write(1, b"heard\\n"))  # print is not reentrant
    print("ready", flush=True)
    peer.lock("gate").hold(20).release()
"""


def test_signals_are_handled_while_a_thread_reads(cluster: Kind) -> None:
    """Even those that arrive while compiled code handles frames: the thread must not sleep before handling them."""
    with cluster.sync_join() as peer:
        gate = peer.lock("gate")
        permit = gate.hold(SOON)
        over = threading.Event()

        def ask() -> None:
            while not over.is_set():
                gate.waiters()  # queries it, which it reads

        asking = threading.Thread(target=ask)
        script = subprocess.Popen([sys.executable, "-c", SIGNALLED, *cluster.seeds], stdout=subprocess.PIPE, text=True)
        try:
            assert script.stdout is not None
            assert script.stdout.readline() == "ready\n"
            until(lambda: len(gate.waiters()) == 1)
            asking.start()
            for _ in range(200):
                script.send_signal(signal.SIGUSR1)
                assert script.stdout.readline() == "heard\n"
            permit.release()
            assert script.wait(SOON) == 0
        finally:
            over.set()
            asking.join(SOON)
            script.kill()
            script.communicate()
