"""Guests of two users: the group of the cluster's directory decides who may be one."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from fairgate import sync
from fairgate.room.clusters import find_standing
from fairgate.room.words import ATOMIC
from tests.live.commands import SOON
from tests.live.guests import GuestHost, end
from tests.room.children import Child
from tests.room.others import ALICE, BOB, TEAM, as_user, become, needs_root, open_folder

pytestmark = needs_root


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Iterator[GuestHost]:
    with open_folder() as folder, ExitStack() as stack:
        os.makedirs(f"{folder}/host/clusters", 0o755)
        os.mkdir(f"{folder}/sockets", 0o700)
        monkeypatch.setenv("FAIRGATE_DIR", f"{folder}/host")
        host = GuestHost(Path(folder) / "sockets")
        host.env["FAIRGATE_DIR"] = f"{folder}/host"
        host.rooms = f"{folder}/host/clusters/fairgate"
        stack.callback(end, host.peer("--group", str(TEAM)))
        yield host


def guest(user: int, seed: str) -> Callable[[Child], None]:
    def visit(me: Child) -> None:
        os.umask(0o077)
        become(user, [TEAM])
        with sync.join(seed) as peer:
            me.say("asks")
            with peer.lock("gpu") as permit:
                me.say(permit.slot)
                me.hear()
        me.say("left")
        me.hear()

    return visit


def test_two_users_take_turns(host: GuestHost) -> None:
    with Child(guest(ALICE, host.seed)) as alice:
        assert [alice.hear(), alice.hear()] == ["asks", "0"]
        with Child(guest(BOB, host.seed)) as bob:
            assert bob.hear() == "asks"
            host.until_waiting("gpu", 1)
            found = host.view("gpu")
            assert found is not None
            assert [one.request.user for one in (*found.inside, *found.waiting)] == [ALICE, BOB]
            alice.say("leave")
            assert alice.hear() == "left"
            assert bob.hear(SOON) == "0"
            bob.end()
    host.until_inside("gpu", 0)


@pytest.mark.skipif(not ATOMIC, reason="plain Python cannot handle SIGBUS")
def test_a_guest_that_cuts_off_a_room_ends_neither_the_peer_nor_other_guests(host: GuestHost) -> None:
    def cut_off() -> object:
        os.truncate(f"{host.rooms}/gpu.gate", 0)
        return "cut"

    with Child(guest(ALICE, host.seed)) as alice:
        assert [alice.hear(), alice.hear()] == ["asks", "0"]
        assert as_user(BOB, cut_off, [TEAM]) == "cut"
        alice.say("go on")  # it finds its permit lost
        assert alice.hear(SOON) == ""
        assert os.waitstatus_to_exitcode(os.waitpid(alice.pid, 0)[1]) == 0
        alice.ended = True
    guest_of_another = host.run("cpu", "--", "echo", "inside")
    assert guest_of_another.communicate(timeout=SOON) == (b"inside\n", b"")


def test_others_are_no_guests(host: GuestHost) -> None:
    assert as_user(BOB, lambda: find_standing((host.seed,)) is None) == "True"
    assert as_user(BOB, lambda: find_standing((host.seed,)) is None, [TEAM]) == "False"


def test_a_group_that_is_not_there(tmp_path: Path) -> None:
    host = GuestHost(tmp_path)
    process = host.start_peer("--group", "nobody-has-this-group")
    assert process.communicate(timeout=SOON)[1] == b"fairgate: there is no group 'nobody-has-this-group'\n"
    assert process.returncode == 2
