"""The choice of the runtime directory, and its error messages."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from fairgate.core.ids import identity
from fairgate.errors import BadInput
from fairgate.net.members import FILE, join, leave, make_change
from fairgate.net.roster import Sit
from fairgate.net.runtime import host_name, rivals, runtime_folder, warn_of_rivals

NONE = Path("/nowhere/at/all")


@pytest.fixture
def world(tmp_path: Path) -> dict[str, str]:
    """The environment of a logged-in user."""
    session = tmp_path / "session"
    session.mkdir(mode=0o700)
    return {"HOME": str(tmp_path / "home"), "XDG_RUNTIME_DIR": str(session)}


def without(world: dict[str, str], *names: str) -> dict[str, str]:
    return {name: value for name, value in world.items() if name not in names}


def test_the_order_of_directories(world: dict[str, str], tmp_path: Path) -> None:
    shared = tmp_path / "run"
    shared.mkdir()
    shared.chmod(0o770)
    host = host_name()
    given = {**world, "FAIRGATE_DIR": str(tmp_path / "given" / "deep")}
    assert runtime_folder(given, shared).folder == tmp_path / "given" / "deep"
    assert runtime_folder(world, shared).folder == shared
    assert runtime_folder(world, shared).group == shared.stat().st_gid
    assert runtime_folder(world, NONE).folder == tmp_path / "session" / "fairgate"
    home = runtime_folder(without(world, "XDG_RUNTIME_DIR"), NONE)
    assert home.folder == tmp_path / "home" / ".local" / "state" / "fairgate" / "run" / host
    state = {**without(world, "XDG_RUNTIME_DIR"), "XDG_STATE_HOME": str(tmp_path / "state")}
    assert runtime_folder(state, NONE).folder == tmp_path / "state" / "fairgate" / "run" / host
    for rule in (runtime_folder(given, NONE), runtime_folder(world, NONE), home):
        assert rule.folder.stat().st_mode & 0o777 == 0o700
        assert rule.group is None


@pytest.mark.parametrize("mode", [0o755, 0o777, 0o1777, 0o750])
def test_a_shared_directory_without_group_access_is_not_used(mode: int, world: dict[str, str], tmp_path: Path) -> None:
    shared = tmp_path / "run"
    shared.mkdir()
    shared.chmod(mode)
    assert runtime_folder(world, shared).folder == tmp_path / "session" / "fairgate"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_the_session_directory_of_another_user_is_not_used(world: dict[str, str], tmp_path: Path) -> None:
    os.chown(tmp_path / "session", 65534, -1)
    assert runtime_folder(world, NONE).folder.is_relative_to(tmp_path / "home")


def test_relative_paths_are_ignored(world: dict[str, str], tmp_path: Path) -> None:
    odd = {**world, "XDG_RUNTIME_DIR": "somewhere", "XDG_STATE_HOME": "else"}
    assert runtime_folder(odd, NONE).folder.is_relative_to(tmp_path / "home")


def test_an_unusable_directory_is_reported_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o755)
    for folder, words in (("file", "cannot create"), ("file/below", "cannot create"), ("open", "accessible")):
        with pytest.raises(BadInput, match=words) as wrong:
            runtime_folder({"FAIRGATE_DIR": str(tmp_path / folder)}, NONE)
        assert str(tmp_path / folder) in str(wrong.value)
        assert "\n" not in str(wrong.value)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_an_unwritable_directory_is_reported(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0o500)
    for folder, words in (("closed", "cannot write to"), ("closed/below", "cannot make")):
        with pytest.raises(BadInput, match=words):
            runtime_folder({"FAIRGATE_DIR": str(tmp_path / folder)}, NONE)


def test_a_gate_of_the_same_name_in_another_directory_causes_a_warning(
    world: dict[str, str], tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cron job and a terminal use two directories, so two gates have the same name."""
    terminal, cron = runtime_folder(world, NONE), runtime_folder(without(world, "XDG_RUNTIME_DIR"), NONE)
    one, two = join(terminal), join(cron)
    make_change(terminal, Sit("report", 1, "fair_k", one.me.id, (identity(one.me.id, 0),)))
    make_change(cron, Sit("report", 1, "fair_k", two.me.id, (identity(two.me.id, 0),)))
    make_change(cron, Sit("other", 1, "fair_k", two.me.id, (identity(two.me.id, 0),)))
    assert rivals(terminal.folder, "report", world, NONE, NONE) == [cron.folder]
    assert rivals(cron.folder, "report", world, NONE, NONE) == [terminal.folder]
    assert rivals(terminal.folder, "none", world, NONE, NONE) == []
    assert rivals(cron.folder, "other", world, NONE, NONE) == []
    # The cron job has no XDG_RUNTIME_DIR, and checks the default directory by itself.
    sessions = tmp_path / "sessions"
    sessions.mkdir()
    (sessions / str(os.geteuid())).symlink_to(tmp_path / "session")
    bare = without(world, "XDG_RUNTIME_DIR")
    found = rivals(cron.folder, "report", bare, NONE, sessions)
    assert [path.resolve() for path in found] == [terminal.folder.resolve()]
    assert rivals(cron.folder, "report", {**bare, "FAIRGATE_DIR": str(cron.folder)}, NONE, sessions) == []
    for name in ("FAIRGATE_DIR", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in world.items():
        monkeypatch.setenv(name, value)
    with caplog.at_level(logging.WARNING, logger="fairgate"):
        warn_of_rivals(terminal.folder, "report")
    assert [str(terminal.folder) in line and str(cron.folder) in line for line in caplog.messages] == [True]
    leave(cron, two.me.id)
    assert rivals(terminal.folder, "report", world, NONE, NONE) == []
    for joined in (one, two):
        joined.listener.close()


def test_a_damaged_directory_causes_no_warning(world: dict[str, str]) -> None:
    terminal, cron = runtime_folder(world, NONE), runtime_folder(without(world, "XDG_RUNTIME_DIR"), NONE)
    (cron.folder / FILE).write_text("{")
    assert rivals(terminal.folder, "report", world, NONE, NONE) == []
