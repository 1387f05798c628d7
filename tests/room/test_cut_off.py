"""A gate's file that another user cuts off while it is mapped. Touching what is gone raises SIGBUS."""

from __future__ import annotations

import asyncio
import faulthandler
import mmap
import os
import signal
from collections.abc import Callable, Iterator

import pytest

from fairgate.errors import FairgateError
from fairgate.room.aio import AsyncRoom
from fairgate.room.calls import clock
from fairgate.room.layout import DIRTY
from fairgate.room.room import Room
from fairgate.room.table import Change
from fairgate.room.words import ATOMIC
from tests.room.children import Child, waits
from tests.room.files import gate
from tests.room.others import ALICE, BOB, TEAM, as_user, become, needs_root, open_folder

pytestmark = [
    needs_root,
    pytest.mark.skipif(not ATOMIC, reason="plain Python cannot handle SIGBUS"),
]

SIZES = [0, 100, 4096]  # nothing, part of the header, the header without the seats


@pytest.fixture
def shared() -> Iterator[str]:
    with open_folder() as folder:
        os.chown(folder, 0, TEAM)
        os.chmod(folder, 0o2770)
        yield folder


def cut_off(folder: str, size: int, again: bool = False) -> None:
    """By another member of the group. `again`: the file gets its size back, but not its contents."""

    def cut() -> object:
        before = gate(folder).stat().st_size
        os.truncate(gate(folder), size)
        if again:
            os.truncate(gate(folder), before)
        return "cut"

    assert as_user(BOB, cut, [TEAM]) == "cut"


def member(work: Callable[[Child], None]) -> Child:
    """ALICE. She says what an error says."""

    def joined(me: Child) -> None:
        faulthandler.disable()  # that of pytest would tell of every fault
        become(ALICE, [TEAM])
        try:
            work(me)
        except FairgateError as wrong:
            me.say(f"{type(wrong).__name__}: {wrong}")
        me.say("still there")
        me.hear()

    return Child(joined)


def why(size: int) -> str:
    """The beginning of what is wrong with a file of this size."""
    return "it is cut off: 4096 bytes of" if size == 4096 else f"it is too short for a gate file ({size} bytes); remove"


@pytest.mark.parametrize("size", SIZES)
def test_idle(shared: str, size: int) -> None:
    def work(me: Child) -> None:
        with Room(shared, str(gate(shared)), 1) as room, Room(shared, f"{shared}/other", 1) as other:
            me.say("open")
            me.hear()
            for _ in range(2):
                try:
                    room.acquire(timeout=0)
                except FairgateError as wrong:
                    me.say(wrong)
            permit = other.acquire(timeout=0)
            me.say(permit and permit.is_valid())

    with member(work) as child:
        assert child.hear() == "open"
        cut_off(shared, size)
        child.say("go on")
        said = [child.hear(), child.hear()]
        if size:  # it had still seen a whole header
            assert said.pop(0) == f"{gate(shared)} was cut off or overwritten: remove it if nobody uses the gate"
        assert all(one.startswith(f"cannot use {gate(shared)}: {why(size)}") for one in said)
        assert child.hear() == "True"  # other gates go on
        assert child.hear() == "still there"


def test_while_a_slot_is_kept(shared: str) -> None:
    """The header is still there, so that the slot seems to be kept; the seat is gone."""

    def work(me: Child) -> None:
        with Room(shared, str(gate(shared)), 1) as room:
            kept = []
            for _ in range(3):
                permit = room.acquire()
                assert permit
                permit.release()
                kept.append(permit.visit.keeps)
            assert kept[-1]
            me.say("kept")
            me.hear()
            room.desk.linked = clock()  # the file was looked at just now
            room.acquire(timeout=0)

    with member(work) as child:
        assert child.hear() == "kept"
        cut_off(shared, 4096)
        child.say("go on")
        assert child.hear() == f"BadInput: {gate(shared)} was cut off or overwritten: remove it if nobody uses the gate"
        assert child.hear() == "still there"


@pytest.mark.parametrize("again", [False, True])
def test_inside(shared: str, again: bool) -> None:
    """Also if the file gets its size back before anybody looks: it is zeros, and no gate."""

    def work(me: Child) -> None:
        with Room(shared, str(gate(shared)), 1) as room:
            permit = room.acquire()
            assert permit
            me.say("inside")
            me.hear()
            me.say(permit.is_valid())
            me.say(permit.why_lost())
            permit.release()

    with member(work) as child:
        assert child.hear() == "inside"
        cut_off(shared, 0, again)
        child.say("go on")
        assert [child.hear(), child.hear()] == ["False", "it was revoked"]
        assert child.hear().startswith(f"BadInput: cannot use {gate(shared)}: {'it is not' if again else why(0)}")
        assert child.hear() == "still there"


@pytest.mark.parametrize("size", SIZES)
def test_waiting(shared: str, size: int) -> None:
    """The tick of the first waiter finds it out."""

    def work(me: Child) -> None:
        with Room(shared, str(gate(shared)), 1) as room:
            me.say("open")
            room.acquire()

    def hold(me: Child) -> None:
        with Room(shared, str(gate(shared)), 1) as room:
            permit = room.acquire()
            assert permit
            me.say("inside")
            me.hear()
            waits(room, 1)
            me.say("not alone")
            me.hear()
            me.say(permit.is_valid())

    with member(hold) as holder:
        assert holder.hear() == "inside"
        with member(work) as child:
            assert child.hear() == "open"
            holder.say("go on")
            assert holder.hear() == "not alone"
            cut_off(shared, size)
            assert child.hear().startswith(("BadInput: ", "GateClosed: "))
            assert child.hear() == "still there"
        holder.say("go on")
        assert holder.hear() == "False"
        assert holder.hear() == "still there"


@pytest.mark.parametrize("size", SIZES)
def test_in_the_middle_of_a_change(shared: str, size: int) -> None:
    """Zeros must not be taken for a grant."""

    def work(me: Child) -> None:
        with Room(shared, str(gate(shared)), 1) as room:
            visit = room.some_visit()
            visit.want(1, None, "")

            def step(change: Change) -> bool:
                me.say("locked")
                me.hear()
                return visit.run(change)

            me.say(room.change(step))

    with member(work) as child:
        assert child.hear() == "locked"
        cut_off(shared, size)
        child.say("go on")
        said = child.hear()
        assert said.startswith(("BadInput: ", "GateClosed: ")), said
        assert child.hear() == "still there"


def test_while_a_table_is_rebuilt(shared: str) -> None:
    """The header is still there and says so; the seats are gone."""

    def work(me: Child) -> None:
        with Room(shared, str(gate(shared)), 1) as room:
            room.file.m[DIRTY] = 1
            me.say("open")
            me.hear()
            room.acquire(timeout=0)

    with member(work) as child:
        assert child.hear() == "open"
        cut_off(shared, 4096)
        child.say("go on")
        assert child.hear() == f"BadInput: {gate(shared)} was cut off or overwritten: remove it if nobody uses the gate"
        assert child.hear() == "still there"


def test_in_an_event_loop(shared: str) -> None:
    def work(me: Child) -> None:
        async def main() -> None:
            with Room(shared, str(gate(shared)), 1) as room:
                here = AsyncRoom(room)
                permit = await here.acquire()
                assert permit
                waiting = asyncio.create_task(here.acquire())
                await asyncio.sleep(0)
                me.say("waits")
                me.hear()
                try:
                    await asyncio.wait_for(waiting, 10)
                finally:
                    me.say(permit.is_valid())

        asyncio.run(main())

    with member(work) as child:
        assert child.hear() == "waits"
        cut_off(shared, 4096)
        child.say("go on")
        assert child.hear() == "False"
        assert child.hear().startswith(f"BadInput: cannot use {gate(shared)}: {why(4096)}")
        assert child.hear() == "still there"


def test_in_a_forked_child(shared: str) -> None:
    """It has inherited the mapping and the handler."""

    def work(me: Child) -> None:
        with Room(shared, str(gate(shared)), 1) as room:
            permit = room.acquire()
            assert permit
            if os.fork() == 0:
                me.say("forked")
                me.hear()
                me.say(permit.is_valid())
                os._exit(7)
            me.say(os.waitstatus_to_exitcode(os.wait()[1]))

    with member(work) as child:
        assert child.hear() == "forked"
        cut_off(shared, 0)
        child.say("go on")
        assert [child.hear(), child.hear()] == ["False", "7"]


# Other faults, and other handlers.


def fault(folder: str) -> None:
    """Touch a mapping of one's own that is cut off."""
    with open(f"{folder}/own", "w+b") as file:
        file.truncate(4096)
        own = mmap.mmap(file.fileno(), 4096)
        file.truncate(0)
        own[0]


@pytest.mark.parametrize("how", ["a fault", "kill"])
@pytest.mark.parametrize("handler", ["none", "faulthandler before", "faulthandler after"])
def test_other_bus_errors_end_the_process_as_before(
    shared: str, how: str, handler: str, capfd: pytest.CaptureFixture[str]
) -> None:
    def work(me: Child) -> None:
        if handler == "faulthandler before":
            faulthandler.enable()
        with Room(shared, str(gate(shared)), 1):
            if handler == "faulthandler after":
                faulthandler.enable()
            me.say("open")
            if how == "kill":
                os.kill(os.getpid(), signal.SIGBUS)
            else:
                fault("/tmp")

    child = member(work)
    assert [child.hear(), child.hear()] == ["open", ""]
    assert os.waitstatus_to_exitcode(os.waitpid(child.pid, 0)[1]) == -signal.SIGBUS
    child.ended = True
    assert ("Fatal Python error: Bus error" in capfd.readouterr().err) == (handler != "none")


def test_a_handler_of_python_is_still_called(shared: str) -> None:
    def work(me: Child) -> None:
        signal.signal(signal.SIGBUS, lambda *_: me.say("caught"))
        with Room(shared, str(gate(shared)), 1):
            os.kill(os.getpid(), signal.SIGBUS)

    with member(work) as child:
        assert [child.hear(), child.hear()] == ["caught", "still there"]


def test_a_private_gate_installs_no_handler(folder: str) -> None:
    def work(me: Child) -> None:
        me.say(caught())
        with Room(folder, "g", 1):
            me.say(caught())

    with Child(work) as child:
        assert child.hear() == child.hear()


def caught() -> bool:
    """Does this process handle SIGBUS?"""
    with open("/proc/self/status") as file:
        caught = next(row for row in file if row.startswith("SigCgt:")).split()[1]
    return bool(int(caught, 16) >> (signal.SIGBUS - 1) & 1)
