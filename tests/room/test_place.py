"""Where gates are: the same user on the same host always meets, or is refused in one line."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from fairgate.errors import BadInput
from fairgate.room import place
from fairgate.room.place import Choice, Places, gates_folder, gates_in, locate
from fairgate.room.room import Room
from fairgate.room.system import machine_id
from tests.room.children import Child
from tests.room.others import ALICE, BOB, answer, as_user, bind, mount, needs_root, open_folder, with_own_mounts

MACHINE = "0123456789abcdef0123456789abcdef"
NOT_LOCAL = "/proc"
ME = os.geteuid()


class World:
    """The directories of a host, for tests."""

    def __init__(self, folder: Path) -> None:
        self.run = folder / "run"
        self.tmp = folder / "tmp"
        self.home = folder / "home"
        self.tmp.mkdir()
        self.tmp.chmod(0o1777)
        self.home.mkdir()

    def make_run(self) -> None:
        self.run.mkdir()
        self.run.chmod(0o1777)

    def places(self, home: str | None = None, machine: str = MACHINE, user: int = ME) -> Places:
        return Places(user, str(self.home) if home is None else home, machine, str(self.run), str(self.tmp))

    def choose(self, home: str | None = None, user: int = ME) -> Choice:
        return self.places(home, user=user).choose()

    def refusal(self, home: str | None = None, user: int = ME) -> str:
        with pytest.raises(BadInput) as refused:
            self.choose(home, user)
        assert "\n" not in str(refused.value)
        return str(refused.value)


@pytest.fixture
def world() -> Iterator[World]:
    with open_folder() as folder:
        yield World(Path(folder))


@pytest.fixture(autouse=True)
def _no_given_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FAIRGATE_DIR", raising=False)


def mode(path: str) -> int:
    return os.stat(path).st_mode & 0o7777


# The choice.


def test_the_first_directory_whose_condition_holds_is_used(world: World) -> None:
    in_tmp = world.choose(home=NOT_LOCAL)
    assert in_tmp.path == f"{world.tmp}/fairgate-{ME}"
    assert "proc is not known to be a local file system" in in_tmp.why
    in_home = world.choose()
    assert in_home.path == f"{world.home}/.local/state/fairgate/{MACHINE}"
    assert "is on a local file system" in in_home.why
    if ME == 0:
        world.make_run()
        in_run = world.choose()
        assert in_run.path == f"{world.run}/{ME}"
        assert in_run.why == f"there is {world.run}"
        assert mode(in_run.path) == 0o700
        assert in_run.rivals == (in_home.path, in_tmp.path)
    for choice in (in_tmp, in_home):
        assert mode(choice.path) == 0o700


def test_directories_above_it_are_created_for_the_user_alone(world: World) -> None:
    before = os.umask(0)
    try:
        world.choose()
    finally:
        os.umask(before)
    for above in (".local", ".local/state", ".local/state/fairgate"):
        assert mode(f"{world.home}/{above}") == 0o700


def test_looking_creates_nothing(world: World) -> None:
    assert world.places().choose(create=False).path.startswith(str(world.home))
    assert list(world.home.iterdir()) == []


@needs_root
def test_an_administrators_directory_must_be_as_it_should(world: World) -> None:
    world.make_run()
    for wrong in (0o777, 0o755, 0o770):
        world.run.chmod(wrong)
        assert "must be a directory of root with mode 1777" in world.refusal()
    world.run.chmod(0o1777)
    os.chown(world.run, ALICE, -1)
    assert "must be a directory of root" in world.refusal()
    world.run.rmdir()
    world.run.symlink_to(world.tmp)
    assert "must be a directory of root" in world.refusal()
    world.run.unlink()
    world.run.write_text("")
    world.run.chmod(0o1777)
    assert "must be a directory of root" in world.refusal()


def test_a_directory_that_is_not_private_is_refused(world: World) -> None:
    path = Path(world.choose().path)
    path.chmod(0o750)
    assert "it has mode 0750, not 0700; correct that with chmod 700" in world.refusal()
    path.rmdir()
    path.write_text("")
    assert "it is not a directory" in world.refusal()
    path.unlink()
    path.symlink_to(world.tmp)
    assert "it is not a directory" in world.refusal()


@needs_root
@pytest.mark.parametrize("home", [None, NOT_LOCAL])
def test_a_directory_of_another_user_is_refused(world: World, home: str | None) -> None:
    os.chown(world.choose(home).path, BOB, -1)
    assert f"it belongs to user {BOB}, not to you ({ME})" in world.refusal(home)


@needs_root
def test_a_directory_that_another_user_made_in_run_is_refused(world: World) -> None:
    world.make_run()
    assert as_user(BOB, (world.run / str(ALICE)).mkdir) == "None"
    os.chown(world.home, ALICE, ALICE)
    said = as_user(ALICE, lambda: world.choose(user=ALICE).path)
    assert f"it belongs to user {BOB}, not to you ({ALICE})" in said


@needs_root
def test_a_home_that_cannot_be_used_is_refused(world: World) -> None:
    assert f"cannot create {world.home}" in as_user(ALICE, lambda: world.choose(user=ALICE).path)
    assert f"cannot use the home directory {world.home}/none" in world.refusal(f"{world.home}/none")
    assert "has no home directory: set FAIRGATE_DIR" in world.refusal(home="")
    assert "user 4001 has no home directory" in as_user(ALICE, gates_folder)
    assert list(world.tmp.iterdir()) == []


@needs_root
def test_a_tmp_of_ones_own_is_refused(world: World) -> None:
    """As systemd units with PrivateTmp= have it: other processes of the user have another one."""
    private = world.home / "systemd-private-12-unit.service-34" / "tmp"
    private.mkdir(parents=True)
    private.chmod(0o1777)

    def work() -> str:
        bind(str(private), str(world.tmp))
        return world.choose(home=NOT_LOCAL).path

    assert "(PrivateTmp=): set FAIRGATE_DIR" in with_own_mounts(work)
    assert not list(private.iterdir())


def test_a_machine_without_an_id_has_a_directory_as_well(world: World) -> None:
    one, other = world.places(), world.places(machine=MACHINE[::-1])
    assert one.choose().path != other.choose().path
    assert world.places(machine="").choose().path == f"{world.home}/.local/state/fairgate/this-machine"


@pytest.mark.parametrize(
    ("text", "found"), [(f"{MACHINE}\n", MACHINE), ("", ""), ("uninitialized\n", ""), ("x" * 32, "")]
)
def test_machine_ids(tmp_path: Path, text: str, found: str) -> None:
    file = tmp_path / "machine-id"
    assert machine_id(str(file)) == ""
    file.write_text(text)
    assert machine_id(str(file)) == found


@needs_root
def test_a_machine_id_that_cannot_be_read_is_refused(world: World) -> None:
    """Another process of the user may be able to read it, and would use another directory."""
    file = world.home / "machine-id"
    file.write_text(MACHINE)
    file.chmod(0o600)
    assert "cannot read" in as_user(ALICE, lambda: machine_id(str(file)))


def test_a_home_may_be_a_link(world: World) -> None:
    link = world.home.parent / "link"
    link.symlink_to(world.home)
    path = world.choose(home=str(link)).path
    Room(path, "g", 1).close()
    assert gates_in(f"{world.home}/.local/state/fairgate/{MACHINE}") == ["g"]


# The environment does not matter.


ENVIRONMENTS: dict[str, dict[str, str]] = {
    "terminal": {"HOME": str(Path.home()), "XDG_RUNTIME_DIR": "/run/user/0", "XDG_STATE_HOME": "/elsewhere"},
    "cron": {"HOME": str(Path.home())},
    "unit": {},
    "sudo -E": {"HOME": "/elsewhere", "USER": "somebody", "SUDO_USER": "somebody"},
}


def python(code: str, environment: dict[str, str]) -> str:
    """What a new interpreter prints."""
    world = {"PYTHONPATH": os.pathsep.join(sys.path), "FAIRGATE_PURE": "1", **environment}
    run = [sys.executable, "-S", "-c", code]
    return subprocess.run(run, env=world, capture_output=True, text=True, check=True).stdout


def test_the_directory_does_not_depend_on_the_environment() -> None:
    code = "from fairgate.room.place import gates_folder; print(gates_folder(create=False))"
    assert len({python(code, environment) for environment in ENVIRONMENTS.values()}) == 1


@needs_root
def test_processes_with_different_environments_meet() -> None:
    def work() -> str:
        mount("tmpfs", "/run")
        os.mkdir("/run/fairgate")
        os.chmod("/run/fairgate", 0o1777)
        with ExitStack() as children:
            entered = [children.enter_context(Child(enter(each))).hear() for each in ENVIRONMENTS.values()]
            return " ".join([*entered, *os.listdir("/run/fairgate")])

    assert with_own_mounts(work) == "True False False False 0"


def enter(environment: dict[str, str]) -> Callable[[Child], None]:
    """Try to enter, say whether that was possible, and stay."""

    def work(me: Child) -> None:
        os.environ.clear()
        os.environ.update(environment)
        with Room(*locate("g"), 1) as room:
            permit = room.acquire(timeout=0)
            me.say(permit is not None)
            me.hear()

    return work


# In use in another place.


def test_a_gate_in_use_in_another_place_is_refused(world: World) -> None:
    old = world.choose(home=NOT_LOCAL)
    new = world.choose()
    with Room(old.path, "g", 1) as room:
        permit = room.acquire(timeout=0)
        assert permit
        with pytest.raises(BadInput) as refused:
            new.refuse_rivals("g")
        assert str(refused.value) == (
            f"gate g is in use in {old.path}, but belongs in {new.path} now, because {new.why}: stop the processes that"
            f" use it there, or set FAIRGATE_DIR={old.path}"
        )
        new.refuse_rivals("other")
        permit.release()
        with pytest.raises(BadInput, match="is in use"):  # this process may enter again at any time
            new.refuse_rivals("g")
    new.refuse_rivals("g")


def test_only_those_who_want_to_enter_are_refused(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = world.choose(home=NOT_LOCAL), world.choose()
    monkeypatch.setattr(place, "choose", lambda create: new)
    with Room(old.path, "g", 1):
        with pytest.raises(BadInput, match="is in use"):
            locate("g")
        assert locate("g", create=False) == (new.path, "g")
    assert locate("g") == (new.path, "g")


def test_a_gate_that_a_killed_process_held_in_another_place_is_not_in_use(world: World, children: ExitStack) -> None:
    old, new = world.choose(home=NOT_LOCAL), world.choose()

    def work(me: Child) -> None:
        room = Room(old.path, "g", 1)
        room.acquire()
        me.say("inside")
        me.hear()

    holder = children.enter_context(Child(work))
    assert holder.hear() == "inside"
    with pytest.raises(BadInput, match="is in use"):
        new.refuse_rivals("g")
    holder.end()
    new.refuse_rivals("g")


def test_children_of_a_killed_process_keep_a_gate_in_use(world: World, children: ExitStack) -> None:
    """They have inherited the bell, and not the file."""
    old, new = world.choose(home=NOT_LOCAL), world.choose()

    def work(me: Child) -> None:
        room = Room(old.path, "g", 1)
        permit = room.acquire()
        assert permit
        permit.share()
        child = os.fork()
        if child == 0:
            me.say(os.getpid())
        me.hear()

    holder = children.enter_context(Child(work))
    left_behind = int(holder.hear())
    os.kill(holder.pid, 9)
    os.waitpid(holder.pid, 0)
    holder.ended = True
    try:
        with pytest.raises(BadInput, match="is in use"):
            new.refuse_rivals("g")
    finally:
        os.kill(left_behind, 9)


def test_a_gate_that_cannot_be_read_may_be_in_use(world: World) -> None:
    old, new = world.choose(home=NOT_LOCAL), world.choose()
    path = Path(old.path) / "g.gate"
    path.write_bytes(b"noise" * 10_000)
    with pytest.raises(BadInput, match=r"gate g may be in use in .* \(cannot use .*: it is not a gate file;"):
        new.refuse_rivals("g")
    path.unlink()
    path.symlink_to("/dev/zero")
    with pytest.raises(BadInput, match=r"gate g may be in use in .* \(Too many levels"):
        new.refuse_rivals("g")


@needs_root
def test_what_other_users_put_there_does_not_matter(world: World) -> None:
    """Else anybody could lock others out, in a directory that all can write to."""
    Room(world.choose(home=NOT_LOCAL).path, "g", 1).close()
    old = world.tmp / f"fairgate-{ALICE}"
    (world.tmp / f"fairgate-{ME}").rename(old)
    os.chown(old, BOB, -1)
    (old / "g.gate").write_bytes(b"noise")
    old.chmod(0o755)
    os.chown(world.home, ALICE, ALICE)
    assert as_user(ALICE, lambda: world.choose(user=ALICE).refuse_rivals("g")) == "None"


# The name of a gate.


def test_a_given_directory_comes_first(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRGATE_DIR", f"{world.home}/some/where")
    assert gates_folder(create=False) == f"{world.home}/some/where"
    assert not (world.home / "some").exists()
    assert locate("g") == (f"{world.home}/some/where", "g")
    assert mode(gates_folder()) == 0o700
    monkeypatch.chdir(world.home)
    monkeypatch.setenv("FAIRGATE_DIR", "some/../some/where")
    assert gates_folder() == f"{world.home}/some/where"


@pytest.mark.parametrize(
    ("folder", "why"), [("file", "Not a directory"), ("file/below", "cannot create"), ("open", "0777")]
)
def test_a_given_directory_that_cannot_be_used_is_refused(
    world: World, monkeypatch: pytest.MonkeyPatch, folder: str, why: str
) -> None:
    (world.home / "file").write_text("")
    (world.home / "open").mkdir()
    (world.home / "open").chmod(0o777)
    monkeypatch.setenv("FAIRGATE_DIR", f"{world.home}/{folder}")
    with pytest.raises(BadInput) as refused:
        Room(*locate("g"), 1)
    assert why in str(refused.value)
    assert str(world.home / folder) in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_gate_can_be_named_by_a_path(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(world.home)
    (world.home / "link").symlink_to(world.tmp)
    assert locate("./my.gate") == (f"{world.home}", f"{world.home}/my.gate")
    assert locate("link/../my.lock") == (f"{world.home.parent}", f"{world.home.parent}/my.lock")  # as for the kernel
    assert locate("/my.gate") == ("/", "/my.gate")
    with Room(*locate("./my.gate"), 2) as room, Room(*locate(f"{world.home}/my.gate"), 2):
        assert room.acquire(timeout=0)
        assert sorted(path.suffix for path in world.home.iterdir() if not path.is_symlink()) == [".bell", ".gate"]


@pytest.mark.parametrize("name", ["", "x" * 201, "two\nlines", "\udcff", "none/my.gate", "y/" * 2001, 5])
def test_names_that_cannot_be_used_are_refused(name: str, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(world.home)
    with pytest.raises(BadInput) as refused:
        Room(*locate(name), 1)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", ["dir/", "./..", "/.", "/"])
def test_the_path_of_a_directory_is_refused(name: str) -> None:
    with pytest.raises(BadInput, match=f"^{re.escape(name)} is a directory: add a file name to it$"):
        locate(name)


def test_a_current_directory_that_was_removed_is_refused(world: World) -> None:
    def work() -> object:
        os.chdir(world.home)
        world.home.rmdir()
        return locate("./my.gate")

    assert answer(work) == "BadInput: the current directory was removed: use an absolute path"


def test_only_regular_files_are_listed(world: World) -> None:
    folder = str(world.home)
    for name in ("b", "a"):
        Room(folder, name, 1).close()
    (world.home / "c.gate").mkdir()
    (world.home / "d.gate").symlink_to("a.gate")
    os.mkfifo(world.home / "e.gate")
    assert gates_in(folder) == ["a", "b"]


# How it starts.


def test_nothing_slow_is_imported() -> None:
    """`fairgate run` imports it."""
    code = "import sys; old = set(sys.modules); import fairgate.room.place; print(*set(sys.modules) - old)"
    new = set(python(code, {}).split())
    assert "fairgate.room.folder" in new
    assert not new & {"ctypes", "dataclasses", "pathlib", "pwd", "subprocess", "typing", "fairgate.room.sweep"}
