"""What people see of the gates of a host, with real processes."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from fairgate.errors import BadInput
from fairgate.room import links
from fairgate.room.calls import clock
from fairgate.room.host import HostView, look, look_at, snapshot
from fairgate.room.layout import (
    ASKED,
    BOOT,
    DIRTY,
    FREE,
    HEAD,
    IS_BEING_MADE,
    MAGIC,
    NEXT,
    PID,
    SLOTS,
    STATE,
    TAIL,
    USED,
    VERSION,
    WAITING,
    K,
)
from fairgate.room.pin import pin
from fairgate.room.room import Room
from fairgate.room.senses import LiveSenses
from fairgate.room.table import Change
from tests.room.children import Child
from tests.room.visitors import end_group, holder, orphans, seen, until, visitor, waiter

NOBODY = 65534


def test_holders_by_slot_and_waiters_in_order(folder: str, children: ExitStack) -> None:
    before = clock()
    first = children.enter_context(holder(folder, 3, note="one", lease=60))
    second = children.enter_context(holder(folder, 3, note="two", permits=2))
    waiters = [children.enter_context(waiter(folder, 3, note=f"number {number}")) for number in range(3)]
    gate = seen(folder)
    assert (gate.name, gate.path, gate.k, gate.taken, gate.in_use) == ("g", f"{folder}/g.gate", 3, 3, True)
    one, two = [visitor.request for visitor in gate.inside]
    assert [(each.pid, each.slots, each.note) for each in (one, two)] == [
        (first.pid, (0,), "one"),
        (second.pid, (1, 2), "two"),
    ]
    assert before < one.since <= two.since < clock() < one.deadline
    assert (two.deadline, one.user) == (0, os.geteuid())
    assert 0 < one.fence < two.fence
    assert [(each.request.pid, each.request.note) for each in gate.waiting] == [
        (child.pid, f"number {number}") for number, child in enumerate(waiters)
    ]
    assert not any(each.stopped or each.left_behind or not each.visible for each in (*gate.inside, *gate.waiting))


def test_the_dead_are_not_listed(folder: str, children: ExitStack) -> None:
    """Also where no living process has noticed, and the table still has them."""
    dead = children.enter_context(holder(folder, 2))
    alive = children.enter_context(holder(folder, 2))
    dead.end()
    assert [each.request.pid for each in seen(folder).inside] == [alive.pid]
    first, second = [children.enter_context(waiter(folder, 2, permits=2)) for _ in range(2)]
    second.end()
    assert [each.request.pid for each in seen(folder).waiting] == [first.pid]
    with Room(folder, "g") as room:
        m = room.file.m
        assert len([seat for seat in links.all_seats(m) if m[seat + STATE] != FREE]) == 3


def test_stopped_processes_are_marked(folder: str, children: ExitStack) -> None:
    inside = children.enter_context(holder(folder, 1))
    waiters = [children.enter_context(waiter(folder, 1)) for _ in range(2)]
    inside.stop()
    waiters[0].stop()
    gate = seen(folder)
    assert [(each.request.pid, each.stopped) for each in (*gate.inside, *gate.waiting)] == [
        (inside.pid, True),
        (waiters[0].pid, True),
        (waiters[1].pid, False),
    ]
    until(lambda: seen(folder).waiting[0].request.stopped)  # passed over, with its place in the queue
    waiters[0].send(signal.SIGCONT)
    until(lambda: not seen(folder).waiting[0].stopped)


@pytest.mark.parametrize("keep_bell", [True, False])
def test_a_command_whose_run_was_killed_keeps_note_and_fence(folder: str, keep_bell: bool) -> None:
    pid, group = orphans(folder, keep_bell, "./train.sh")
    try:
        [one] = seen(folder).inside
        assert (one.left_behind, one.stopped, one.visible) == (True, False, True)
        assert (one.request.pid, one.request.group, one.request.note) == (pid, group, "./train.sh")
        assert one.request.fence > 0
        assert one.request.slots == (0,)
    finally:
        end_group(group)
    until(lambda: not seen(folder).inside)


def test_a_process_with_the_id_of_a_dead_one_is_not_taken_for_it(folder: str, children: ExitStack) -> None:
    children.enter_context(holder(folder, 1))
    m = snapshot(f"{folder}/g.gate")
    assert m is not None
    senses, seat = LiveSenses(folder), links.holders(m)[0]
    assert not senses.is_left_behind(m, seat)
    m[seat + PID] = children.enter_context(visitor(folder, 1)).pid  # it has started later
    m[seat + ASKED] -= 10**9
    assert senses.is_left_behind(m, seat)


def test_pins_are_listed_apart(folder: str) -> None:
    with Room(folder, "g", 3) as room:
        pin(room)
        gate = seen(folder)
        assert (gate.inside, gate.waiting, gate.pins, gate.in_use) == ((), (), (os.getpid(),), True)
    assert not seen(folder).in_use


def test_counters(folder: str, children: ExitStack) -> None:
    with Room(folder, "g", 1) as room:
        permit = room.acquire()
        assert permit
        late = children.enter_context(waiter(folder, 1))
        permit.release()
        assert late.hear() == "(0,)"
        assert room.revoke(0)
    counters = seen(folder).counters
    assert (counters.grants, counters.losses, sum(counters.histogram)) == (2, 1, 2)
    assert 0 < counters.longest <= counters.waited


def test_a_room_that_has_grown(folder: str) -> None:
    with Room(folder, "g", 200) as room:
        held = [room.acquire(timeout=0) for _ in range(200)]
        assert seen(folder).taken == len(held)


# Other users, other namespaces.


def test_a_user_who_may_only_read_sees_everything(children: ExitStack) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    folder = Path(children.enter_context(TemporaryDirectory(prefix="fairgate")))
    folder.chmod(0o755)
    inside = children.enter_context(holder(str(folder), 1))
    waits = children.enter_context(waiter(str(folder), 1))
    (folder / "g.gate").chmod(0o644)

    def work(me: Child) -> None:
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        gate = seen(str(folder))
        me.say([each.request.pid for each in (*gate.inside, *gate.waiting)])
        me.hear()

    reader = children.enter_context(Child(work))
    assert reader.hear() == str([inside.pid, waits.pid])


IN_A_CONTAINER = """
import sys
from fairgate.room.room import Room
with Room(sys.argv[1], "g", 2) as room:
    permit = room.acquire(note="in a container")
    print("inside", flush=True)
    sys.stdin.readline()
"""


def test_processes_of_other_pid_namespaces_are_marked(folder: str, children: ExitStack) -> None:
    command = [
        "unshare",
        "--pid",
        "--fork",
        "--mount-proc",
        "--kill-child",
        sys.executable,
        "-c",
        IN_A_CONTAINER,
        folder,
    ]
    if not shutil.which("unshare") or subprocess.run([*command[:4], "true"], check=False).returncode:
        pytest.skip("pid namespaces cannot be created here")
    here = children.enter_context(holder(folder, 2))
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "inside\n"
        assert [(each.visible, each.left_behind, each.request.pid == here.pid) for each in seen(folder).inside] == [
            (True, False, True),
            (False, False, False),
        ]
        process.communicate(timeout=20)
    assert [each.request.pid for each in seen(folder).inside] == [here.pid]


# Looking changes nothing, and does not wait.


def test_nothing_is_created(tmp_path: Path) -> None:
    folder = str(tmp_path / "none")
    assert look(folder) == HostView(folder, (), ())
    assert look_at(folder, "g") is None
    assert look_at(str(tmp_path), "g") is None
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_only_read(folder: str, children: ExitStack) -> None:
    dead = children.enter_context(holder(folder, 1))
    dead.end()
    path = Path(folder) / "g.gate"
    before = path.read_bytes()
    assert seen(folder).inside == ()
    assert path.read_bytes() == before


def test_a_process_that_is_stopped_with_the_lock_stays_stopped(folder: str, children: ExitStack) -> None:
    def work(me: Child) -> None:
        with Room(folder, "g", 1) as room:
            permit = room.acquire()
            assert permit

            def stop(change: Change) -> None:
                room.file.m[DIRTY] = 1
                me.say("stops")
                os.kill(os.getpid(), signal.SIGSTOP)

            room.change(stop)

    child = children.enter_context(Child(work))
    assert child.hear() == "stops"
    os.waitpid(child.pid, os.WUNTRACED)
    began = time.monotonic()
    [one] = seen(folder).inside
    assert time.monotonic() - began < 5
    assert (one.request.pid, one.stopped) == (child.pid, True)
    assert Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def test_derived_words_are_not_trusted(folder: str, children: ExitStack) -> None:
    inside = children.enter_context(holder(folder, 1))
    waiters = [children.enter_context(waiter(folder, 1)) for _ in range(2)]
    for each in waiters:
        each.stop()  # or they would repair it
    with Room(folder, "g") as room:
        m = room.file.m
        m[HEAD], m[TAIL], m[USED] = m[TAIL], m[HEAD], 0
        m[m[HEAD] + NEXT] = m[HEAD]
        gate = seen(folder)
        assert [each.request.pid for each in (*gate.inside, *gate.waiting)] == [each.pid for each in (inside, *waiters)]
        room.change(room.file.rebuild)


def test_half_a_grant_is_none(folder: str, children: ExitStack) -> None:
    inside = children.enter_context(holder(folder, 2))
    with Room(folder, "g") as room:
        m = room.file.m
        seat = links.holders(m)[0]
        m[SLOTS + 1] = m[SLOTS]  # it had only one when its state was stored
        assert seen(folder).inside == ()
        m[SLOTS + 1] = 0
        m[seat + STATE] = WAITING
        assert [each.request.pid for each in seen(folder).waiting] == [inside.pid]


# Files that are not usable.


def change_word(path: Path, at: int, value: int) -> None:
    data = bytearray(path.read_bytes())
    data[8 * at : 8 * at + 8] = value.to_bytes(8, "little", signed=True)
    path.write_bytes(data)


def test_one_bad_file_does_not_hide_the_others(folder: str) -> None:
    here = Path(folder)
    for name in ("cut", "noise", "old", "good"):
        Room(folder, name, 2).close()
    (here / "cut.gate").write_bytes((here / "cut.gate").read_bytes()[:2000])
    (here / "noise.gate").write_bytes(random.Random(1).randbytes(40_000))
    change_word(here / "old.gate", VERSION, 99)
    (here / "empty.gate").touch()
    (here / "link.gate").symlink_to("/dev/zero")
    os.mkfifo(here / "pipe.gate")  # like the link it can be no gate
    (here / "new\nline.gate").touch()
    host = look(folder)
    assert [gate.name for gate in host.gates] == ["good"]
    assert [name for name, _ in host.unusable] == ["cut", "noise", "old"]
    assert all(f"{folder}/{name}.gate" in why and "\n" not in why for name, why in host.unusable)


def test_a_folder_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(BadInput, match="file: Not a directory"):
        look(str(tmp_path / "file"))


def test_a_gate_of_another_boot_is_empty(folder: str, children: ExitStack) -> None:
    one = children.enter_context(holder(folder, 3))
    change_word(Path(folder) / "g.gate", BOOT, 12345)
    assert [each.request.pid for each in seen(folder).inside] == [
        one.pid
    ]  # it is not of another boot: its bell is heard
    one.end()
    gate = seen(folder)
    assert (gate.inside, gate.k, gate.counters.grants) == ((), 3, 1)


def test_a_gate_whose_creator_died_is_none(folder: str) -> None:
    Room(folder, "g", 1).close()
    change_word(Path(folder) / "g.gate", MAGIC, IS_BEING_MADE)
    assert look_at(folder, "g") is None


def test_damaged_tables_neither_crash_nor_hang(folder: str) -> None:
    rng = random.Random(3)
    with Room(folder, "g", 2) as room:
        for _ in range(2):
            room.acquire(timeout=0)
        whole = Path(room.file.path).read_bytes()
        m = room.file.m
        for _ in range(300):
            for _ in range(rng.randrange(1, 30)):
                at = rng.choice([rng.randrange(K, SLOTS + 4), links.first_seat(m) + rng.randrange(200)])
                m[at] = rng.choice([0, 1, 2, 4, -1, rng.randrange(2000), rng.randrange(-(1 << 62), 1 << 62)])
            with suppress(BadInput):
                look_at(folder, "g")
            for at, word in enumerate(memoryview(whole).cast("q")):
                m[at] = word
