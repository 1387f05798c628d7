"""Time namespaces: the deadlines in a gate's file mean nothing to a process with another CLOCK_BOOTTIME."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from fairgate.errors import BadInput
from fairgate.room import host, keeping, opening, system
from fairgate.room.layout import BOOT
from fairgate.room.room import Room
from fairgate.room.sweep import DAY, sweep
from tests.room.children import Child, until, visitor
from tests.room.clocks import NEW_TIME, Shifted, new_clock
from tests.room.files import gate, refusal, store
from tests.room.others import answer, libc, needs_root

pytestmark = needs_root

ELSEWHERE = "processes in another time namespace use it"
Kind = Callable[[Callable[[Child], None]], Child]


def opener(folder: str) -> Callable[[Child], None]:
    """Opens the gate whenever it is told to, and says what came of it."""

    def work(me: Child) -> None:
        while me.hear() == "open":
            try:
                with Room(folder, "g", 1) as room:
                    permit = room.acquire(timeout=0)
                me.say(permit and permit.fence)
            except BadInput as wrong:
                me.say(wrong)

    return work


@pytest.mark.parametrize(("kind", "other"), [(Shifted, Child), (Child, Shifted)])
@pytest.mark.parametrize("lease", [0.0, 60.0])
def test_a_gate_in_use_with_another_clock_is_refused(
    folder: str, children: ExitStack, kind: Kind, other: Kind, lease: float
) -> None:
    """Otherwise the lease of the one would be over for the other, or last for 200 s longer."""
    holder = children.enter_context(kind(visitor(folder, 1, lease=lease)))
    assert [holder.hear(), holder.hear()] == ["asks", "0"]
    child = children.enter_context(other(opener(folder)))
    child.say("open")
    said = child.hear()
    assert said.startswith(f"cannot use {gate(folder)}: {ELSEWHERE}")
    holder.say("valid?")
    assert holder.hear() == "True"
    holder.say("leave")
    assert holder.hear() == "left"
    child.say("open")
    assert child.hear() == said  # it has the gate open
    holder.end()
    child.say("open")
    assert int(child.hear()) > 0


def test_an_unused_gate_goes_over_and_its_fences_rise(folder: str, children: ExitStack) -> None:
    here = children.enter_context(Child(opener(folder)))
    there = children.enter_context(Shifted(opener(folder)))
    fences = []
    for child in (here, there, here, there, there):
        child.say("open")
        fences.append(int(child.hear()))
    assert fences == sorted(set(fences))


@pytest.mark.parametrize("how", ["inherits the bell", "is its group"])
def test_what_a_killed_process_has_left_inside_counts(folder: str, children: ExitStack, how: str) -> None:
    """As `fairgate run` does it, with and without --close: nobody has the file open any more."""

    def command(me: Child) -> None:
        room = Room(folder, "g", 1)
        permit = room.acquire()
        assert permit
        if how == "inherits the bell":
            permit.share()
        pid = os.fork()
        if pid == 0:
            os.setpgid(0, 0)
            me.say("inside")
            signal.pause()
        permit.hand_to(pid)
        me.say(pid)
        me.hear()

    child = children.enter_context(Shifted(command))
    left = int(next(word for word in (child.hear(), child.hear()) if word != "inside"))
    child.end()
    with pytest.raises(ChildProcessError):
        os.waitpid(left, os.WNOHANG)
    os.kill(left, 0)
    before = gate(folder).read_bytes()
    try:
        assert ELSEWHERE in refusal(folder)
        with pytest.raises(BadInput, match=ELSEWHERE):
            host.look_at(folder, "g")
        old = time.time() - 2 * DAY
        os.utime(gate(folder), (old, old))
        sweep(folder, False)
        assert gate(folder).read_bytes() == before
    finally:
        os.kill(left, signal.SIGKILL)
    until(lambda: not system.is_alive(left))
    Room(folder, "g", 1).close()


def test_who_does_not_show_times_of_another_clock(folder: str, children: ExitStack) -> None:
    holder = children.enter_context(Shifted(visitor(folder, 1)))
    assert [holder.hear(), holder.hear()] == ["asks", "0"]
    assert host.look(folder).gates == ()
    ((name, why),) = host.look(folder).unusable
    assert name == "g"
    assert why.startswith(f"cannot use {gate(folder)}: {ELSEWHERE}")
    holder.end()
    found = host.look_at(folder, "g")
    assert found is not None
    assert not found.in_use


def test_another_monotonic_clock_does_not_matter(folder: str, children: ExitStack) -> None:
    """Nothing in the file depends on it."""
    child = children.enter_context(Shifted(visitor(folder, 2, lease=60), "monotonic -100 0"))
    assert [child.hear(), child.hear()] == ["asks", "0"]
    with Room(folder, "g", 2) as room:
        assert room.acquire(timeout=0) is not None


def test_a_process_keeps_its_clock_when_only_its_children_get_another_one(folder: str) -> None:
    """/proc/self/timens_offsets is about its children."""

    def work() -> object:
        assert new_clock()
        with Room(folder, "g", 2) as room:
            return room.acquire(timeout=0) is not None

    with Room(folder, "g", 2) as room:
        assert room.acquire()
        assert answer(work) == "True"


def test_a_process_that_cannot_tell_its_clock_is_refused(folder: str, children: ExitStack) -> None:
    def work(me: Child) -> None:
        assert new_clock()
        try:
            Room(folder, "g", 1)
        except BadInput as wrong:
            me.say(wrong)

    child = children.enter_context(Shifted(work))
    assert child.hear() == (
        "this process has made a time namespace for its children (unshare), so it cannot find out its own clock: open"
        " gates before that, or in a child"
    )


def test_a_process_that_has_moved_to_another_time_namespace_is_refused(folder: str, children: ExitStack) -> None:
    """Nothing that was found out before is remembered."""
    there = children.enter_context(Shifted(opener(folder)))

    def work() -> object:
        Room(folder, "g", 1).close()
        fd = os.open(f"/proc/{there.inner}/ns/time", os.O_RDONLY)
        with Room(folder, "g", 1):
            if os.fork() == 0:
                assert libc.setns(fd, NEW_TIME) == 0
                os._exit(7 if ELSEWHERE in refusal(folder) else 1)
            return os.waitstatus_to_exitcode(os.wait()[1])

    assert answer(work) == "7"


def test_a_kernel_without_time_namespaces_has_one_clock(tmp_path: Path) -> None:
    assert system.clock_offset(str(tmp_path)) == 0


def test_every_offset_is_another_clock(tmp_path: Path) -> None:
    """To the nanosecond. The boot is the same one."""
    found = {}
    for offset in ((0, 0), (-200, 0), (-200, 1), (200, 0), (0, 200), (10**9, 0)):
        (tmp_path / "ns").mkdir(exist_ok=True)
        for name in ("time", "time_for_children"):
            (tmp_path / "ns" / name).unlink(missing_ok=True)
            (tmp_path / "ns" / name).symlink_to("../timens_offsets")
        (tmp_path / "timens_offsets").write_text("monotonic  5 0\nboottime {:>10} {:>9}\n".format(*offset))
        found[system.boot_id(str(tmp_path))] = offset
    assert len(found) == 6
    assert all(system.is_this_boot(boot) for boot in found)
    assert found[system.boot_id()] == (0, 0)


def test_a_table_that_is_started_again_counts_the_entries_of_a_kept_slot(
    folder: str, children: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that was alone has entered without the lock; only KEPT knows how often."""

    def alone(me: Child) -> None:
        room = Room(folder, "g", 1)
        permit = room.acquire()
        assert permit
        m, seat, fence = room.file.m, permit.seat, permit.fence
        endings = room.change(lambda change: keeping.keep(m, seat))
        for _ in range(10):
            assert keeping.enter(m, seat, fence, endings, 0)
            fence += 1
            assert keeping.rest(m, seat, fence, endings)
        me.say(fence)
        me.hear()

    child = children.enter_context(Child(alone))
    fence = int(child.hear())
    child.end()
    store(gate(folder), BOOT, 12345)
    monkeypatch.setattr(opening, "first_fence", lambda: 1)  # the clock was set back meanwhile
    with Room(folder, "g", 1) as room:
        permit = room.acquire()
        assert permit
        assert permit.fence > fence
