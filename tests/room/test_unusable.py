"""Files that cannot be used, or not yet: each is refused in one line and not changed, or repaired."""

from __future__ import annotations

import gc
import os
import resource
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from fairgate.cli.run.command import run_arguments
from fairgate.errors import BadInput, GateClosed
from fairgate.room import calls, opening, system, table
from fairgate.room.bell import Bell, path_of
from fairgate.room.calls import REMOVED, UNSEEN
from fairgate.room.folder import PRIVATE
from fairgate.room.layout import BOOT, IS_BEING_MADE, MACHINE, MAGIC, VERSION, K
from fairgate.room.opening import FIRST_SIZE, LARGEST, UNFINISHED
from fairgate.room.room import Room
from fairgate.room.senses import LiveSenses
from tests.room.children import Child
from tests.room.files import bell, gate, listen, opened, refusal, replaced, store, until
from tests.room.others import ALICE, answer, as_user, mount, needs_root, open_folder, with_own_mounts

# Files that are no gates, or not usable ones.


NOT_A_GATE = "it is not a gate file"
UNUSABLE: list[tuple[str, Callable[[Path], object]]] = [
    ("it is a directory, not a gate file", lambda path: replaced(path, Path.mkdir)),
    ("it is a symbolic link, not a gate file", lambda path: replaced(path, lambda new: new.symlink_to("other.gate"))),
    ("it is a named pipe, not a gate file", lambda path: replaced(path, os.mkfifo)),
    ("it is a socket, not a gate file", lambda path: replaced(path, listen)),
    (f"it is too large for a gate file ({LARGEST + 1} bytes)", lambda path: os.truncate(path, LARGEST + 1)),
    ("it is too short for a gate file (100 bytes)", lambda path: os.truncate(path, 100)),
    ("it is too short for a gate file (1 bytes)", lambda path: path.write_bytes(b"x")),
    ("it is cut off: 8000 bytes of", lambda path: os.truncate(path, 8000)),
    ("it is cut off: 8000 bytes of", lambda path: os.truncate(path, 8007)),
    (NOT_A_GATE, lambda path: path.write_bytes(b"noise" * 10_001)),
    (NOT_A_GATE, lambda path: path.write_bytes(bytes(FIRST_SIZE) + b"zeros, and then text")),
    (NOT_A_GATE, lambda path: path.write_bytes(bytes(64) + b"text" * 10_000)),
    (NOT_A_GATE, lambda path: path.write_bytes(bytes(FIRST_SIZE + 8))),
    (NOT_A_GATE, lambda path: store(path, MAGIC, 0)),
    (NOT_A_GATE, lambda path: path.write_bytes(IS_BEING_MADE.to_bytes(8, "little") * 1000)),  # too short for a table
    ("it has version 99", lambda path: store(path, VERSION, 99)),
    ("its header is damaged", lambda path: store(path, K, 0)),
]


@pytest.mark.parametrize(("why", "change"), UNUSABLE)
def test_unusable_files_are_refused_and_not_changed(folder: str, why: str, change: Callable[[Path], object]) -> None:
    Room(folder, "g", 1).close()
    change(gate(folder))
    before = contents(folder)
    assert why in refusal(folder)
    assert contents(folder) == before


def test_a_file_that_may_not_be_a_gate_need_not_be_removed(tmp_path: Path) -> None:
    """Nobody should remove /etc/passwd because fairgate says so."""
    (tmp_path / "text").write_text("text" * 1000)
    with pytest.raises(BadInput, match="it is not a gate file; use another name, or remove it if it is a gate that"):
        Room(str(tmp_path), f"{tmp_path}/text", 1)


@pytest.mark.parametrize(("why", "change"), UNUSABLE)
def test_commands_refuse_unusable_files_in_one_line(
    why: str, change: Callable[[Path], object], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    with open_folder() as folder:
        monkeypatch.setenv("FAIRGATE_DIR", folder)
        Room(folder, "g", 1).close()
        change(gate(folder))
        assert run_arguments(["g", "--", "echo", "inside"]) == 2
        said = capfd.readouterr()
        assert said.out == ""
        assert said.err.startswith(f"fairgate: cannot use {gate(folder)}: {why}")
        assert said.err.count("\n") == 1


def contents(folder: str) -> list[tuple[str, int, bytes]]:
    return [
        (path.name, path.lstat().st_mode, path.read_bytes()[:1_000_000] if path.is_file() else b"")
        for path in sorted(Path(folder).iterdir())
    ]


@needs_root
def test_a_device_is_refused_before_it_is_opened(folder: str) -> None:
    os.mknod(gate(folder), 0o20600, os.makedev(250, 250))  # there is none: opening it would fail
    assert "it is a device, not a gate file" in refusal(folder)


@pytest.mark.parametrize("size", [0, 8, 1000, FIRST_SIZE])
@pytest.mark.parametrize("by_path", [False, True])
def test_an_empty_file_is_refused_and_not_changed(folder: str, size: int, by_path: bool) -> None:
    """It may be a file that a program is about to write."""
    gate(folder).write_bytes(bytes(size))
    gate(folder).chmod(0o640)
    before = gate(folder).stat()
    assert refusal(folder, str(gate(folder)) if by_path else "g") == (
        f"cannot use {gate(folder)}: it is empty, and may be another program's; use another name, or remove it if"
        " nothing needs it"
    )
    after = gate(folder).stat()
    assert (after.st_mode, after.st_mtime_ns, after.st_size) == (before.st_mode, before.st_mtime_ns, size)
    assert gate(folder).read_bytes() == bytes(size)


@pytest.mark.parametrize("size", [0, FIRST_SIZE])
def test_an_emptied_file_that_is_in_use_does_not_become_a_new_gate(folder: str, size: int) -> None:
    """Its tickets and fences would begin again, and a permit of the old gate could be taken for one of the new gate."""
    with Room(folder, "g", 1) as room:
        permit = room.acquire()
        assert permit
        contents = gate(folder).read_bytes()
        os.truncate(gate(folder), 0)
        os.truncate(gate(folder), size)
        assert "it was emptied while processes use it; end them first" in refusal(folder)
        gate(folder).write_bytes(contents)
        assert permit.is_valid()
    with Room(folder, "g", 1) as room:
        assert room.acquire(timeout=0)


def test_a_file_that_is_cut_off_while_it_is_mapped_is_refused(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with Room(folder, "g", 1) as room:
        fstat = os.fstat

        def cut_off_afterwards(fd: int) -> os.stat_result:
            monkeypatch.undo()
            found = fstat(fd)
            os.truncate(gate(folder), 4096)
            return found

        monkeypatch.setattr(os, "fstat", cut_off_afterwards)
        with pytest.raises(BadInput, match=f"cannot use {gate(folder)}: mmap length is greater than file size"):
            room.file.map()
        os.truncate(gate(folder), FIRST_SIZE)  # for closing it


@pytest.mark.parametrize("size", [0, 8, 1000, FIRST_SIZE])
def test_a_gate_that_has_lost_its_contents_is_created_again(folder: str, size: int) -> None:
    """In a power failure, a file can get its name although its contents were not written yet."""
    Room(folder, "g", 1).close()
    os.truncate(gate(folder), 0)
    os.truncate(gate(folder), size)
    with Room(folder, str(gate(folder)), 2) as room:
        assert room.acquire(timeout=0)
        assert gate(folder).stat().st_size == FIRST_SIZE


def test_a_table_whose_creator_died_is_created_again(folder: str) -> None:
    Room(folder, "g", 3).close()
    store(gate(folder), MAGIC, IS_BEING_MADE)
    with Room(folder, "g", 2) as room:
        assert room.acquire(timeout=0)
        assert room.file.m[K] == 2


@pytest.mark.parametrize(
    ("module", "name"), [(opening, "share"), (opening, "allocate"), (opening, "start"), (table, "create"), (os, "link")]
)
def test_a_creator_that_dies_leaves_no_gate(
    folder: str, monkeypatch: pytest.MonkeyPatch, module: object, name: str
) -> None:
    def die(*_: object, **__: object) -> None:
        os._exit(0)

    monkeypatch.setattr(module, name, die)
    assert answer(opened(folder)) == ""
    monkeypatch.undo()
    (left,) = os.listdir(folder)
    assert left.endswith(UNFINISHED)
    assert answer(opened(folder)) == "True 600 600"


def test_a_creator_whose_file_was_swept_tries_again(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    link = os.link

    def swept(path: str, *rest: object, **where: object) -> None:
        monkeypatch.undo()
        os.unlink(f"{folder}/{path}")
        link(path, *rest, **where)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "link", swept)
    Room(folder, "g", 1).close()
    assert gate(folder).exists()


def test_a_creator_that_is_overtaken_uses_the_file_of_the_other(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    link = os.link

    def overtaken(path: str, *rest: object, **where: object) -> None:
        monkeypatch.undo()
        Room(folder, "g", 2).close()
        link(path, *rest, **where)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "link", overtaken)
    with Room(folder, "g", 0) as room:
        assert room.file.m[K] == 2


def test_many_processes_create_one_gate(folder: str, children: ExitStack) -> None:
    def work(me: Child) -> None:
        me.hear()
        with Room(folder, "g", 1) as room:
            me.say(os.fstat(room.file.fd).st_ino)
            me.hear()

    every = [children.enter_context(Child(work)) for _ in range(8)]
    for child in every:
        child.say("open")
    assert len({child.hear() for child in every}) == 1
    assert sorted(os.listdir(folder)) == [".swept", "g.gate"]


def test_a_file_that_is_swept_while_it_is_opened_is_created_again(folder: str) -> None:
    Room(folder, "g", 1).close()
    fd = os.open(gate(folder), os.O_RDWR)
    assert calls.try_lock(fd)
    rooms: list[Room] = []
    opener = threading.Thread(target=lambda: rooms.append(Room(folder, "g", 1)))
    opener.start()
    until(lambda: os.path.realpath(gate(folder)) in open_files_but(fd))
    os.unlink(gate(folder))
    os.close(fd)
    opener.join()
    (room,) = rooms
    assert room.file.is_linked()
    room.close()


def open_files_but(fd: int) -> list[str]:
    """What this process has open, except for this descriptor."""
    found = []
    for name in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):
            if name != str(fd):
                found.append(os.readlink(f"/proc/self/fd/{name}"))
    return found


def test_a_name_that_a_dead_creator_left_does_not_hide_a_removal(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def die(*_: object, **__: object) -> None:
        os._exit(0)

    monkeypatch.setattr(os, "unlink", die)
    assert answer(opened(folder)) == ""
    monkeypatch.undo()
    assert gate(folder).stat().st_nlink == 2
    with Room(folder, "g", 1) as room:
        assert room.file.is_linked()
        gate(folder).unlink()
        assert not room.file.is_linked()
        Room(folder, "g", 1).close()
        assert not room.file.is_linked()
        with pytest.raises(GateClosed, match="was removed"):
            room.acquire(timeout=0)


# Machines and boots.


def test_the_table_of_another_machine_is_refused(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copied home directory, for instance. Its processes cannot be seen, so it is not started again."""
    Room(folder, "g", 1).close()
    store(gate(folder), MACHINE, 12345)
    Room(folder, "g", 1).close()  # the same boot: a container with another id
    store(gate(folder), BOOT, 67890)
    before = contents(folder)
    monkeypatch.setattr(system, "machine_id", lambda: "f" * 32)
    assert "it belongs to another machine; remove it if it is a copy" in refusal(folder)
    assert contents(folder) == before
    store(gate(folder), MACHINE, 0)
    Room(folder, "g", 1).close()


def test_a_new_table_names_its_machine(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for text, number in (("f" * 32, 0xFFFFFFFFFFFFFFF), ("", 0)):
        monkeypatch.setattr(system, "machine_id", lambda text=text: text)
        with Room(folder, f"g{number}", 1) as room:
            assert room.file.m[MACHINE] == number


def test_a_gate_in_use_with_another_boot_id_is_refused(folder: str, children: ExitStack) -> None:
    """Some containers have a boot id of their own: then there was no reboot."""

    def work(me: Child) -> None:
        room = Room(folder, "g", 1)
        me.say("has it open")
        me.hear()
        room.acquire()
        os.close(room.file.fd)
        me.say("has a bell")
        me.hear()

    child = children.enter_context(Child(work))
    assert child.hear() == "has it open"
    store(gate(folder), BOOT, 12345)
    assert "processes with another boot id are using it" in refusal(folder)
    child.say("enter")
    assert child.hear() == "has a bell"
    assert "processes with another boot id are using it" in refusal(folder)
    child.end()
    Room(folder, "g", 1).close()


# Full disks.


@needs_root
def test_a_full_disk_is_reported_and_leaves_nothing_behind(shared: str) -> None:
    def work() -> object:
        mount("tmpfs", shared, "size=16k")
        os.chmod(shared, 0o700)
        try:
            Room(shared, "g", 1)
        except BadInput as wrong:
            return f"{wrong} {os.listdir(shared)}"
        return "no error"

    assert with_own_mounts(work) == f"cannot create {shared}/g.gate: No space left on device []"


@needs_root
def test_a_file_that_cannot_be_filled_stays_as_it_was(shared: str) -> None:
    """A file system without fallocate(2) gets as far as it can."""

    def work() -> object:
        mount("ramfs", shared)
        os.chmod(shared, 0o700)
        gate(shared).touch()
        gate(shared).chmod(PRIVATE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (FIRST_SIZE // 2, FIRST_SIZE // 2))
        try:
            Room(shared, "g", 1)
        except BadInput as wrong:
            return f"{wrong} {gate(shared).stat().st_size}"
        return "no error"

    assert with_own_mounts(work) == f"cannot use {shared}/g.gate: File too large 0"


@needs_root
def test_a_disk_that_is_full_when_a_room_grows_is_reported(shared: str) -> None:
    def work() -> object:
        mount("tmpfs", shared, "size=80k")
        os.chmod(shared, 0o700)
        with Room(shared, "g", 100) as room:
            Path(f"{shared}/filler").write_bytes(bytes(20_000))
            permits = []
            try:
                for _ in range(100):
                    permits.append(room.acquire())
            except BadInput as wrong:
                unchanged = gate(shared).stat().st_size == FIRST_SIZE
                valid = all(permit and permit.is_valid() for permit in permits)
                return f"{wrong} {len(permits)} {len(room.requests())} {unchanged} {valid}"
            return "no error"

    assert with_own_mounts(work) == f"cannot use {shared}/g.gate: No space left on device 64 64 True True"


def sparse(path: Path, data: bytes) -> None:
    """As cp --sparse copies it: pages of zeros become holes."""
    with path.open("wb") as file:
        for at in range(0, len(data), 4096):
            if data[at : at + 4096].strip(b"\0"):
                os.pwrite(file.fileno(), data[at : at + 4096], at)
        file.truncate(len(data))


@needs_root
def test_holes_in_a_copy_are_filled(shared: str) -> None:
    """A store into a hole would end the process if the disk is full."""

    def work() -> object:
        mount("tmpfs", shared, "size=128k")
        os.chmod(shared, 0o700)
        Room(shared, "g", 1).close()
        data = gate(shared).read_bytes()
        replaced(gate(shared), lambda new: sparse(new, data))
        holes = gate(shared).stat().st_blocks
        with Room(shared, "g", 1):
            filled = gate(shared).stat().st_blocks
        os.truncate(gate(shared), 4096)
        os.truncate(gate(shared), FIRST_SIZE)
        gc.collect()  # else the old file, which a closed room still maps, may be freed when the disk is full
        with pytest.raises(OSError, match="No space left"):
            Path(f"{shared}/filler").write_bytes(bytes(200_000))
        gc.collect()
        try:
            Room(shared, "g", 1)
        except BadInput as wrong:
            return f"{holes * 512 < FIRST_SIZE <= filled * 512} {wrong}"
        return "no error"

    assert with_own_mounts(work) == f"True cannot use {shared}/g.gate: No space left on device"


# Bells.


def test_a_process_without_descriptors_leaves_no_bell_behind(folder: str) -> None:
    def work() -> object:
        with Room(folder, "g", 1) as room:
            resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
            taken = []
            with suppress(OSError):
                while True:
                    taken.append(os.dup(0))
            try:
                room.acquire()
            except BadInput as wrong:
                os.close(taken.pop())  # for listdir
                return f"{wrong} {sorted(os.listdir(folder))}"
        return "no error"

    assert answer(work) == f"cannot create a named pipe in {folder}: Too many open files ['.swept', 'g.gate']"


def test_a_bell_that_was_swept_too_early_is_created_again(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its process was stopped in between for more than a minute."""
    mkfifo = os.mkfifo

    def swept(path: str, mode: int) -> None:
        monkeypatch.undo()
        mkfifo(path, mode)
        os.unlink(path)

    monkeypatch.setattr(os, "mkfifo", swept)
    made = Bell(folder)
    assert os.path.exists(made.path)
    made.close()


def test_what_cannot_be_seen_counts_as_alive(folder: str) -> None:
    """Something else in the place of a bell, or a bell that may not be opened."""
    with Room(folder, "g", 1) as room:
        permit = room.acquire()
        assert permit
        path = bell(folder)
        senses = LiveSenses(folder)
        others: list[Callable[[Path], object]] = [
            Path.touch,
            lambda new: new.symlink_to(os.devnull),
            listen,
            Path.mkdir,
        ]
        for create in others:
            replaced(Path(path), create)
            assert calls.open_to_ring(path) == UNSEEN
            assert not senses.is_gone(room.file.m, permit.seat)
        os.rmdir(path)
        assert calls.open_to_ring(path) == REMOVED
        assert not senses.is_gone(room.file.m, permit.seat)


@needs_root
def test_a_bell_that_may_not_be_opened_counts_as_alive(shared: str) -> None:
    made = Bell(shared)
    assert as_user(ALICE, lambda: calls.open_to_ring(path_of(shared, made.owner))) == str(UNSEEN)
    made.close()
    assert calls.open_to_ring(made.path) == REMOVED
