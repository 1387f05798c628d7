"""net/system: the plain and the compiled module must behave the same. The one that is in use is tested."""

from __future__ import annotations

import os
import select
import signal
import socket
import struct
import threading
import time
import warnings
from collections.abc import Iterator

import pytest

from fairgate.errors import ReentrantCall
from fairgate.net.system import Latch, Poller, Wire, clock, headed, once, once_if_free
from tests.support.latches import is_locked

SOON = 20.0
Pair = tuple[Wire, socket.socket]


@pytest.fixture
def pair() -> Iterator[Pair]:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    wire = Wire(ours.detach())
    with theirs:
        yield wire, theirs
    wire.close()


def test_a_wire_sends_and_receives(pair: Pair) -> None:
    wire, theirs = pair
    with pytest.raises(BlockingIOError):
        wire.take()
    theirs.sendall(b"abc")
    assert wire.take() == b"abc"
    assert wire.give(b"12") + wire.give(bytearray(b"345")) + wire.give(bytearray()) == 5
    assert theirs.recv(100) == b"12345"


def test_a_wire_reads_long_data_in_pieces(pair: Pair) -> None:
    wire, theirs = pair
    sent = os.urandom(10_000)
    theirs.sendall(sent)
    pieces = [wire.take() for _ in range(3)]
    assert [len(piece) for piece in pieces] == [4_096, 4_096, 1_808]
    assert b"".join(pieces) == sent


def room(wire: Wire) -> int:
    """How many bytes it accepts until it is full."""
    taken = 0
    while True:
        try:
            taken += wire.give(bytes(1 << 16))
        except BlockingIOError:
            return taken


def test_a_full_wire_does_not_block(pair: Pair) -> None:
    wire, theirs = pair
    taken = room(wire)
    theirs.setblocking(False)
    read = 0
    while read < taken:
        read += len(theirs.recv(1 << 20))
    assert read == taken


def test_the_end_of_a_wire(pair: Pair) -> None:
    wire, theirs = pair
    theirs.close()
    assert wire.take() == b""
    before = signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # as in programs that should die of a broken pipe
    try:
        with pytest.raises(BrokenPipeError):
            wire.give(b"x")
    finally:
        signal.signal(signal.SIGPIPE, before)


def test_a_closed_wire_has_no_descriptor() -> None:
    ours, theirs = socket.socketpair()
    number = ours.detach()
    wire = Wire(number)
    assert wire.fileno() == number
    wire.close()
    wire.close()
    assert wire.fileno() == -1
    with pytest.raises(OSError, match="Bad file descriptor"):
        wire.take()
    with pytest.raises(OSError, match="Bad file descriptor"):
        wire.give(b"x")
    assert theirs.recv(1) == b""
    theirs.close()


def test_a_garbage_collected_wire_is_closed() -> None:
    ours, theirs = socket.socketpair()
    wire = Wire(ours.detach())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        del wire
    assert theirs.recv(1) == b""
    theirs.close()


def test_a_wire_without_a_descriptor_closes_nothing() -> None:
    """In particular not descriptor 0."""
    spare = os.open(os.devnull, os.O_RDONLY)  # becomes 0 if that was closed
    with pytest.raises(TypeError):
        Wire("x")  # type: ignore[arg-type]
    os.fstat(0)
    os.close(spare)


def test_a_poller_returns_readable_descriptors(pair: Pair) -> None:
    wire, theirs = pair
    sight = Poller()
    sight.add(wire.fileno())
    assert sight.wait(0) == []
    theirs.send(b"x")
    assert sight.wait(SOON) == [wire.fileno()]
    sight.hide(wire.fileno(), True)
    assert sight.wait(0) == []
    sight.hide(wire.fileno(), False)
    assert sight.wait(SOON) == [wire.fileno()]
    sight.remove(wire.fileno())
    assert sight.wait(0) == []
    with pytest.raises(FileNotFoundError):
        sight.remove(wire.fileno())
    with pytest.raises(FileNotFoundError):
        sight.hide(wire.fileno(), True)


def test_a_poller_inside_a_poller(pair: Pair) -> None:
    """As the loop watches the sockets, see net/reader.py."""
    wire, theirs = pair
    inner, outer = Poller(), Poller()
    inner.add(wire.fileno())
    outer.add(inner.fileno())
    theirs.send(b"x")
    assert outer.wait(SOON) == [inner.fileno()]
    assert select.select([outer.fileno()], [], [], 0)[0] == [outer.fileno()]
    outer.hide(inner.fileno(), True)
    assert outer.wait(0) == []


def test_a_poller_waits_no_longer_than_its_timeout() -> None:
    """The kernel may return early, for example after uvloop has used io_uring; so take the longest of several waits."""
    sight = Poller()
    took = []
    for _ in range(5):
        begin = time.monotonic()
        assert sight.wait(0.0301) == []
        took.append(time.monotonic() - begin)
    assert 0.03 <= max(took) < SOON


def test_nan_is_not_a_valid_timeout() -> None:
    with pytest.raises(ValueError, match="NaN"):
        Poller().wait(float("nan"))


def test_a_signal_interrupts_a_poller() -> None:
    """Its handler runs, and an exception that it raises propagates."""

    def handler(*_: object) -> None:
        raise InterruptedError("heard")

    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(InterruptedError, match="heard"):
            Poller().wait(SOON)
    finally:
        signal.signal(signal.SIGALRM, before)


def test_a_latch_is_a_lock() -> None:
    latch = Latch()
    assert not is_locked(latch)
    with latch:
        assert is_locked(latch)
        assert latch.is_mine()
    assert not latch.is_mine()
    assert latch.acquire(True, 0.01)
    latch.release()
    with pytest.raises(RuntimeError):
        latch.release()


def test_waiting_for_a_latch_lets_other_threads_run() -> None:
    latch = Latch()
    latch.acquire()
    had = threading.Event()

    def wait() -> None:
        with latch:
            had.set()

    thread = threading.Thread(target=wait)
    thread.start()
    assert not had.wait(0.05)
    latch.release()
    assert had.wait(SOON)
    thread.join(SOON)
    assert not is_locked(latch)


def test_a_signal_interrupts_waiting_for_a_latch() -> None:
    def handler(*_: object) -> None:
        raise InterruptedError("heard")

    latch = Latch()
    taken, over = threading.Event(), threading.Event()

    def hold() -> None:
        with latch:
            taken.set()
            over.wait(SOON)

    thread = threading.Thread(target=hold)
    thread.start()
    taken.wait(SOON)
    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(InterruptedError, match="heard"):
            latch.acquire(True, SOON)
        signal.signal(signal.SIGALRM, lambda *_: None)
        signal.setitimer(signal.ITIMER_REAL, 0.01)
        assert not latch.acquire(True, 0.05)
        signal.signal(signal.SIGALRM, lambda *_: over.set())  # what the handler does takes effect
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        assert latch.acquire(True, SOON)
    finally:
        signal.signal(signal.SIGALRM, before)
        over.set()
        thread.join(SOON)


def test_a_turn_within_a_turn_of_the_same_thread() -> None:
    """A signal handler would wait for itself."""
    latch = Latch()
    for _ in once(latch):
        with pytest.raises(ReentrantCall, match="signal handler"):
            list(once(latch))
        for _ in once_if_free(latch):
            raise AssertionError
        assert is_locked(latch)
    assert not is_locked(latch)
    turns = 0
    for _ in once_if_free(latch):
        assert is_locked(latch)
        turns += 1
    assert (turns, is_locked(latch)) == (1, False)


def test_a_failing_body_releases_the_latch() -> None:
    latch = Latch()
    with pytest.raises(KeyError), latch:
        raise KeyError
    assert not is_locked(latch)


def test_the_clock_is_boottime() -> None:
    before = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    now = clock()
    assert before <= now <= time.clock_gettime_ns(time.CLOCK_BOOTTIME)


@pytest.mark.parametrize("size", [0, 1, 255, 256, 70_000])
def test_the_head_of_a_frame(size: int) -> None:
    body = bytes(size)
    assert headed(7, body) == struct.pack(">IB", size + 1, 7) + body
