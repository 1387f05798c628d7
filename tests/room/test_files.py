"""The directories and files of gates: which users, links and file systems are accepted."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack

import pytest

from fairgate.errors import BadInput
from fairgate.room.folder import Folder, resolved
from fairgate.room.room import Room
from tests.room.children import Child
from tests.room.files import bell, gate, opened, refusal
from tests.room.others import ALICE, BOB, TEAM, answer, as_user, become, mount, needs_root, with_own_mounts

STRANGER = 4003


# Users and groups.


@pytest.mark.parametrize("of_folder", [0o700, 0o755, 0o1777, 0o750])
def test_files_are_private(folder: str, of_folder: int) -> None:
    os.chmod(folder, of_folder)
    before = os.umask(0)
    try:
        assert answer(opened(folder)) == "True 600 600"
    finally:
        os.umask(before)


@needs_root
@pytest.mark.parametrize("of_folder", [0o2770, 0o770, 0o2775, 0o3770])
def test_users_of_a_group_share_a_gate(shared: str, of_folder: int, children: ExitStack) -> None:
    os.chown(shared, 0, TEAM)
    os.chmod(shared, of_folder)

    def member(user: int) -> Callable[[Child], None]:
        def work(me: Child) -> None:
            become(user, [TEAM])
            os.umask(0o077)
            with Room(shared, "g", 1) as room:
                me.say("asks")
                permit = room.acquire()
                assert permit
                me.say("inside")
                me.hear()
                permit.release()
                me.say("left")
                me.hear()

        return work

    alice = children.enter_context(Child(member(ALICE)))
    assert [alice.hear(), alice.hear()] == ["asks", "inside"]
    found = [os.stat(path) for path in (gate(shared), bell(shared))]
    assert [(each.st_mode & 0o777, each.st_uid, each.st_gid) for each in found] == [(0o660, ALICE, TEAM)] * 2
    bob = children.enter_context(Child(member(BOB)))
    assert bob.hear() == "asks"
    assert bob.is_silent()
    alice.say("leave")
    assert alice.hear() == "left"
    assert bob.hear() == "inside"
    assert as_user(STRANGER, opened(shared)).startswith("BadInput: cannot ")
    alice.end()
    bob.end()  # killed while it is inside
    assert as_user(ALICE, opened_by_member(shared), [TEAM]) == "True"


def opened_by_member(folder: str) -> Callable[[], object]:
    def work() -> bool:
        with Room(folder, "g", 1) as room:
            return room.acquire(timeout=0) is not None

    return work


@needs_root
def test_a_group_that_one_is_not_in_is_refused(shared: str) -> None:
    """The members could not use the file."""
    os.chown(shared, ALICE, TEAM)
    os.chmod(shared, 0o770)
    assert as_user(ALICE, opened(shared)) == f"BadInput: cannot create {shared}/g.gate: Operation not permitted"
    assert os.listdir(shared) == []
    Room(shared, "g", 1).close()
    os.chown(gate(shared), ALICE, ALICE)
    said = as_user(ALICE, opened(shared))
    assert said == f"BadInput: cannot create a named pipe in {shared}: Operation not permitted"
    assert os.listdir(shared) == ["g.gate", ".swept"] or os.listdir(shared) == [".swept", "g.gate"]


def test_a_directory_in_which_everyone_can_replace_files_is_refused(folder: str) -> None:
    os.chmod(folder, 0o777)
    assert "everyone can replace files there (mode 0777): use mode 0700" in refusal(folder)
    assert os.listdir(folder) == []


@needs_root
@pytest.mark.parametrize("of_folder", [0o755, 0o1777])
def test_a_directory_of_another_user_is_refused(shared: str, of_folder: int) -> None:
    os.chmod(shared, of_folder)
    os.chown(shared, ALICE, -1)
    assert f"it belongs to user {ALICE}, not to you (user 0)" in refusal(shared)


@needs_root
def test_a_file_of_another_user_is_refused(shared: str) -> None:
    os.chmod(shared, 0o1777)
    assert as_user(BOB, opened(shared)) == "True 600 600"
    gate(shared).chmod(0o644)
    said = as_user(ALICE, opened(shared))
    assert said == f"BadInput: cannot use {shared}/g.gate: it belongs to user {BOB}, not to you (user {ALICE})"
    assert f"it belongs to user {BOB}" in refusal(shared)


@pytest.mark.parametrize(("of_folder", "of_file"), [(0o700, 0o620), (0o755, 0o602), (0o770, 0o662)])
def test_a_file_that_others_can_write_to_is_refused(folder: str, of_folder: int, of_file: int) -> None:
    os.chmod(folder, of_folder)
    Room(folder, "g", 1).close()
    gate(folder).chmod(of_file)
    assert f"others can write to it (mode {of_file:04o}): correct that with chmod go-w" in refusal(folder)


# Links.


@needs_root
@pytest.mark.parametrize(
    ("of_folder", "owner", "accepted"),
    [(0o755, 0, True), (0o1777, ALICE, True), (0o1777, 0, True), (0o1777, BOB, False), (0o777, ALICE, False)],
)
def test_a_link_above_a_gate_must_not_be_replaceable(shared: str, of_folder: int, owner: int, accepted: bool) -> None:
    os.mkdir(f"{shared}/own")
    os.chown(f"{shared}/own", ALICE, ALICE)
    os.mkdir(f"{shared}/above")
    os.symlink("../own", f"{shared}/above/link")
    os.chown(f"{shared}/above/link", owner, owner, follow_symlinks=False)
    os.chmod(f"{shared}/above", of_folder)
    said = as_user(ALICE, opened_by_member(f"{shared}/above/link"))
    assert said == (
        "True" if accepted else f"BadInput: cannot use {shared}/above/link: others can replace this symbolic link"
    )


def test_links_are_resolved_as_in_the_kernel(folder: str) -> None:
    os.makedirs(f"{folder}/a/b")
    os.symlink("a/b", f"{folder}/relative")
    os.symlink(f"{folder}/relative", f"{folder}/absolute")
    os.symlink("loop", f"{folder}/loop")
    for path in ("relative", "absolute", "absolute/../b", "./a//b/.", "relative/../../absolute"):
        assert resolved(f"{folder}/{path}") == os.path.realpath(f"{folder}/{path}")
    assert resolved("/..") == "/"
    with pytest.raises(BadInput, match="too many symbolic links"):
        resolved(f"{folder}/loop/x")
    with pytest.raises(BadInput, match="No such file"):
        resolved(f"{folder}/none/../a")


# File systems.


@pytest.mark.parametrize("path", ["/proc/self", "/sys"])
def test_a_file_system_that_is_not_local_is_refused(path: str) -> None:
    with pytest.raises(BadInput, match=r"cannot use .*: (proc|sysfs) is not known to be a local file system"):
        Folder(path)


@needs_root
@pytest.mark.parametrize(("kind", "accepted"), [("tmpfs", True), ("ramfs", True), ("hugetlbfs", False)])
def test_file_systems(shared: str, kind: str, accepted: bool) -> None:
    def work() -> object:
        mount(kind, shared)
        os.chmod(shared, 0o700)
        return opened(shared)()

    why = f"BadInput: cannot use {shared}: {kind} is not known to be a local file system"
    assert with_own_mounts(work) == ("True 600 600" if accepted else why)


@needs_root
@pytest.mark.parametrize(("kind", "accepted"), [("tmpfs", True), ("hugetlbfs", False)])
def test_file_systems_in_a_chroot(shared: str, kind: str, accepted: bool) -> None:
    """There the mount of the root directory is hidden."""

    jail = f"{shared}/jail"

    def work() -> object:
        mount(kind, shared)
        os.makedirs(f"{jail}/proc")
        os.mkdir(f"{jail}/own", 0o700)
        mount("proc", f"{jail}/proc")
        os.chroot(jail)
        os.chdir("/")
        with Folder("/own") as folder:
            return folder.path

    why = "BadInput: cannot use /own: file system 0x958458f6 is not known to be local"
    assert with_own_mounts(work) == ("/own" if accepted else why)


@needs_root
def test_a_chroot_without_proc_is_refused(shared: str) -> None:
    def work() -> object:
        os.chroot(shared)
        os.chdir("/")
        return Room("/", "g", 1)

    said = answer(work)
    assert said.startswith("BadInput: cannot read /proc/self/fdinfo/")
    assert said.endswith(": No such file or directory; fairgate needs /proc")
