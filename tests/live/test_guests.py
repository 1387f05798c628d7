"""Guests of a standing peer, in real processes: they come and go, and peers and guests are killed and stopped."""

from __future__ import annotations

import asyncio
import json
import random
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import fairgate
from fairgate import sync
from fairgate.live.guests import Guests
from fairgate.room.calls import is_stopped
from fairgate.room.clusters import NO_MAJORITY, describe, described
from fairgate.room.layout import PATIENT
from tests.live.commands import FAIRGATE, SOON, line, run, until
from tests.live.guests import GuestHost, end

NOTE = "echo in; read line"


@pytest.fixture
def host(tmp_path: Path) -> GuestHost:
    return GuestHost(tmp_path)


@pytest.fixture
def processes() -> Iterator[list[subprocess.Popen[bytes]]]:
    started: list[subprocess.Popen[bytes]] = []
    yield started
    end(*started)


Processes = list[subprocess.Popen[bytes]]


def test_a_guest_imports_neither_asyncio_nor_the_engine(host: GuestHost, processes: Processes) -> None:
    processes.append(host.peer())
    code = f"""
import sys
from fairgate.cli.run.command import run_arguments
assert run_arguments(["x", "--join", {host.seed!r}, "--", "true"]) == 0
from fairgate import sync
with sync.join({host.seed!r}) as peer, peer.lock("x") as permit:
    assert permit.slot == 0 and permit.fence > 0
print(*[name for name in sys.modules if name == "asyncio" or name.startswith(("fairgate.live", "fairgate.net"))])
"""
    done = subprocess.run(
        [sys.executable, "-c", code], check=False, capture_output=True, text=True, env=host.env, timeout=SOON
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "\n", "")


def test_guests_take_turns_in_order(host: GuestHost, processes: Processes) -> None:
    processes.append(host.peer())
    processes.append(first := host.inside("gpu"))
    for number in range(3):
        words = ("-c", f"echo {number} >> {host.folder}/order")
        processes.append(host.run("gpu", "--", "sh", *words))
        host.until_waiting("gpu", number + 1)
    first.communicate(timeout=SOON)
    for process in processes[2:]:
        assert process.wait(SOON) == 0
    assert (host.folder / "order").read_text().split() == ["0", "1", "2"]


def test_what_is_the_peers_is_refused(host: GuestHost, processes: Processes) -> None:
    processes.append(peer := host.peer())
    for words in (("--listen", "unix:/x"), ("--keys", "/x"), ("--journal", "/x")):
        done = run("run", "x", "--join", host.seed, *words, "--", "true", env=host.env)
        told = f"this process is a guest of the standing peer of cluster fairgate on this host (pid {peer.pid})"
        assert done.returncode == 2
        assert done.stderr == f"fairgate: {words[0]} is for peers: {told}, which has its own\n"


def test_another_k_or_protocol_is_refused_in_one_line(host: GuestHost, processes: Processes) -> None:
    processes += [host.peer(), host.inside("gpu", "-k", "2")]
    done = run("run", "gpu", "-k", "3", "--join", host.seed, "--", "true", env=host.env)
    assert done.returncode == 2
    assert done.stderr == "fairgate: gate gpu is open with k=2, not k=3: everyone must give the same k\n"
    words = ("-k", "2", "--protocol", "fair_k", "--join", host.seed)
    done = run("run", "gpu", *words, "--", "true", env=host.env)
    assert done.returncode == 2
    assert done.stderr == "fairgate: gate gpu runs one_line, not fair_k: all its peers must agree\n"
    done = run("run", "gpu", "-k", "2", "--permits", "2", "--join", host.seed, "--", "true", env=host.env)
    assert done.returncode == 2


def test_an_unused_gate_takes_another_k(host: GuestHost, processes: Processes) -> None:
    processes.append(host.peer())
    for k in ("2", "3", "1"):
        done = run("run", "gpu", "-k", k, "--join", host.seed, "--", "true", env=host.env)
        assert (done.returncode, done.stderr) == (0, "")


def test_a_second_standing_peer_of_a_host_is_refused(host: GuestHost, processes: Processes) -> None:
    processes.append(peer := host.peer())
    done = run("peer", "--join", host.seed, env=host.env)
    assert done.returncode == 2
    assert done.stderr.startswith(f"fairgate: pid {peer.pid} is already the standing peer of cluster fairgate")


def test_a_process_becomes_a_member_if_the_address_is_of_another_cluster(host: GuestHost, processes: Processes) -> None:
    processes.append(host.peer())
    words = ("x", "--join", f"unix:{host.folder}/else", "--join-timeout", "0.2", "--", "true")
    done = run("run", *words, env=host.env)
    assert done.returncode == 2
    assert "could not join within 0.2 s" in done.stderr
    other = run("run", "x", "--join", host.seed, "--cluster", "other", "--", "true", env=host.env)
    assert other.stderr == f"fairgate: {host.seed} is in cluster fairgate, not in other: name it with --cluster\n"


# The dead and the stopped.


def test_a_killed_guest_frees_its_slot_at_once(host: GuestHost, processes: Processes) -> None:
    processes.append(host.peer())
    processes.append(holder := host.inside("gpu"))
    processes.append(waiter := host.run("gpu", "--", "sh", "-c", NOTE))
    host.until_waiting("gpu", 1)
    processes.append(last := host.run("gpu", "--", "sh", "-c", NOTE))
    host.until_waiting("gpu", 2)
    waiter.kill()
    host.until_waiting("gpu", 1)
    holder.kill()
    assert line(last) == "in"


def test_a_stopped_guest_is_passed_over_and_keeps_its_place(host: GuestHost, processes: Processes) -> None:
    processes.append(host.peer())
    processes.append(holder := host.inside("gpu"))
    processes.append(stopped := host.run("gpu", "--", "sh", "-c", NOTE))
    host.until_waiting("gpu", 1)
    processes.append(other := host.run("gpu", "--", "sh", "-c", NOTE))
    host.until_waiting("gpu", 2)
    stop(stopped)
    holder.communicate(timeout=SOON)
    assert line(other) == "in"
    processes.append(late := host.run("gpu", "--", "sh", "-c", NOTE))
    host.until_waiting("gpu", 2)
    stopped.send_signal(signal.SIGCONT)
    until(lambda: not host_view_stopped(host))
    other.communicate(timeout=SOON)
    assert line(stopped) == "in"
    stopped.communicate(timeout=SOON)
    assert line(late) == "in"


def stop(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGSTOP)
    until(lambda: is_stopped(process.pid))


def host_view_stopped(host: GuestHost) -> bool:
    found = host.view("gpu")
    return found is None or any(one.request.stopped for one in found.waiting)


def test_all_guests_are_stopped_when_their_turn_comes(host: GuestHost, processes: Processes) -> None:
    """The slot is passed on, and asked for again when one of them continues."""
    processes.append(host.peer())
    processes.append(holder := host.inside("gpu"))
    processes.append(stopped := host.run("gpu", "--", "sh", "-c", NOTE))
    host.until_waiting("gpu", 1)
    time.sleep(2 * PATIENT / 1e9)  # one that has waited for less is let in without a look
    stop(stopped)
    holder.communicate(timeout=SOON)
    until(lambda: host_view_stopped(host))
    assert run("run", "gpu", "--join", host.seed, "--", "true", env=host.env).returncode == 0
    stopped.send_signal(signal.SIGCONT)
    assert line(stopped) == "in"


@pytest.mark.parametrize("how", ["killed", "left"])
def test_a_new_peer_serves_those_that_wait_in_order(host: GuestHost, processes: Processes, how: str) -> None:
    """Three guests inside, twenty wait. Nobody is let in twice, and the order is kept."""
    processes.append(peer := host.peer("--lease", "100"))  # a loaded machine takes its time until there is a new peer
    holders = [host.inside("gpu", "-k", "3") for _ in range(3)]
    processes += holders
    waiters = []
    for number in range(20):
        waiters.append(host.run("gpu", "-k", "3", "--", "sh", "-c", note_turn(host, number)))
        host.until_waiting("gpu", number + 1)
    processes += waiters
    peer.send_signal(signal.SIGKILL if how == "killed" else signal.SIGTERM)
    peer.communicate(timeout=SOON)
    if how == "killed":  # those inside stay inside, until their promises end
        found = host.view("gpu")
        assert found is not None
        assert len(found.inside) == 3
        assert [holder.poll() for holder in holders] == [None] * 3
    else:  # their permits were lost, because the cluster has got the slots back
        assert [holder.wait(SOON) for holder in holders] == [128 + signal.SIGTERM] * 3
    assert not (host.folder / "order").exists()
    processes.append(again := host.peer())  # a new cluster: over Unix sockets a peer does not save the old one
    for waiter in waiters:
        assert waiter.wait(SOON) == 0
    turns = [tuple(map(int, turn.split())) for turn in (host.folder / "order").read_text().splitlines()]
    assert sorted([number for *_, number in turns]) == list(range(20))
    for slot in range(3):  # fences rise with every grant of a slot
        order = [number for place, _, number in sorted(turns) if place == slot]
        assert order == sorted(order)
    again.kill()
    told = again.communicate(timeout=SOON)[1].decode()
    assert ("let in by an earlier cluster of this name and still inside: pid" in told) == (how == "killed")


def note_turn(host: GuestHost, number: int) -> str:
    return f"echo $FAIRGATE_SLOT $FAIRGATE_FENCE {number} >> {host.folder}/order"


def test_a_stopped_peer_lets_nobody_in_until_it_continues(host: GuestHost, processes: Processes) -> None:
    processes.append(peer := host.peer())
    processes.append(holder := host.inside("gpu"))
    stop(peer)
    done = run("run", "gpu", "-w", "0.2", "-E", "7", "--join", host.seed, "--", "true", env=host.env)
    assert done.returncode == 7
    processes.append(waiter := host.run("gpu", "--", "sh", "-c", NOTE))
    host.until_waiting("gpu", 1)
    holder.communicate(timeout=SOON)
    peer.send_signal(signal.SIGCONT)
    assert line(waiter) == "in"


def test_a_third_of_the_guests_gives_up(host: GuestHost, processes: Processes) -> None:
    processes.append(host.peer())
    rng = random.Random(3)
    guests = []
    mark = f"{host.folder}/inside"
    command = f"mkdir {mark} && sleep 0.01 && rmdir {mark}"
    for _ in range(30):
        hurry = ("-w", f"{rng.uniform(0.01, 0.5):.3f}", "-E", "9") if rng.random() < 0.3 else ()
        guests.append((host.run("gpu", *hurry, "--", "sh", "-c", command), hurry))
    processes += [guest for guest, _ in guests]
    codes = [(guest.wait(SOON), bool(hurry)) for guest, hurry in guests]
    assert all(code == 0 or (hurry and code == 9) for code, hurry in codes)
    found = host.view("gpu")
    assert found is not None
    assert not found.in_use


# Draining, and looking.


def test_drain(host: GuestHost, processes: Processes) -> None:
    processes.append(peer := host.peer("--drain", "30"))
    processes.append(holder := host.inside("gpu"))
    processes.append(waiter := host.run("gpu", "--", "true"))
    host.until_waiting("gpu", 1)
    peer.terminate()
    until(lambda: described(host.rooms) is not None)
    time.sleep(0.1)
    assert peer.poll() is None
    holder.communicate(b"leave\n", timeout=SOON)
    assert holder.returncode == 0
    assert peer.wait(SOON) == 0
    assert waiter.poll() is None
    left = described(host.rooms)
    assert left is not None
    assert not left.is_alive()


@pytest.mark.parametrize("drain", [(), ("--drain", "50ms")])
def test_a_guest_is_told_that_its_peer_has_left(host: GuestHost, processes: Processes, drain: tuple[str, ...]) -> None:
    processes.append(peer := host.peer(*drain))
    processes.append(holder := host.inside("gpu"))
    peer.terminate()
    assert holder.wait(SOON) == 128 + signal.SIGTERM
    assert holder.stderr is not None
    told = b"fairgate: gate gpu: the permit for slot 0 was lost: the standing peer of this host has left the cluster\n"
    assert holder.stderr.read() == told
    assert peer.wait(SOON) == 0


def test_drain_is_for_peers_of_clusters() -> None:
    done = run("peer", "gpu", "--drain", "3")
    assert done.returncode == 2
    assert done.stderr.startswith("fairgate: --group and --drain are for peers of a cluster")


def test_guests_are_shown_with_process_and_command(host: GuestHost, processes: Processes) -> None:
    processes.append(host.peer())
    processes.append(holder := host.inside("gpu"))
    done = run("who", "gpu", "--join", host.seed, env=host.env)
    assert str(holder.pid) in done.stdout
    assert "echo in; read line" in done.stdout
    done = run("break", "gpu", "0", "--yes", "--join", host.seed, env=host.env)
    assert done.returncode == 0, done.stderr
    assert holder.wait(SOON) == 128 + signal.SIGTERM
    assert holder.stderr is not None
    assert b"gate gpu: the permit for slot 0 was lost: it was revoked" in holder.stderr.read()


WITHOUT_SLOTS = ("gpu", "-k", "2", "--protocol", "raymond")


def test_a_permit_without_a_slot_is_not_named_by_one(host: GuestHost, processes: Processes) -> None:
    processes.append(peer := host.peer())
    processes.append(holder := host.inside(*WITHOUT_SLOTS))
    done = run("break", "gpu", "0", "--yes", "--join", host.seed, env=host.env)
    told = "nobody with pid 0 is inside gate gpu; raymond has no slots, so give the pid that `fairgate who` shows"
    assert (done.returncode, done.stderr) == (1, f"fairgate: {told}\n")
    done = run("break", "gpu", str(holder.pid), "--yes", "--join", host.seed, env=host.env)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"a permit of gate gpu is free again: pid {holder.pid} was notified")
    assert holder.wait(SOON) == 128 + signal.SIGTERM
    assert holder.stderr is not None
    assert b"gate gpu: the permit was lost: it was revoked" in holder.stderr.read()
    peer.terminate()
    assert b"gate gpu: the permit was lost: it was revoked" in peer.communicate(timeout=SOON)[1]


def test_a_nested_command_needs_no_slot(host: GuestHost, processes: Processes) -> None:
    processes.append(host.peer())
    words = ["run", WITHOUT_SLOTS[0], "--join", host.seed, *WITHOUT_SLOTS[1:], "--"]
    nested = shlex.join([*FAIRGATE, *words, "sh", "-c", 'echo "in <$FAIRGATE_FENCE>"'])
    done = run(*words, "sh", "-c", nested, env=host.env)
    note = "fairgate: note: this command already runs inside gate gpu, so it does not wait\n"
    assert (done.returncode, done.stdout, done.stderr) == (0, "in <>\n", note)


def test_a_free_slot_of_a_cluster_cannot_be_broken(host: GuestHost, processes: Processes) -> None:
    processes += [host.peer(), host.inside("gpu", "-k", "2")]
    done = run("break", "gpu", "1", "--yes", "--join", host.seed, env=host.env)
    assert (done.returncode, done.stderr) == (1, "fairgate: nobody is in slot 1 of gate gpu\n")
    done = run("break", "gpu", "2", "--yes", "--join", host.seed, env=host.env)
    assert (done.returncode, done.stderr) == (2, "fairgate: gate gpu has no slot 2: its slots are 0 to 1\n")


def test_who_shows_guests_without_joining(host: GuestHost, processes: Processes) -> None:
    processes.append(peer := host.peer())
    processes.append(holder := host.inside("team/gpu", "-k", "2"))
    processes.append(host.inside("team/gpu", "-k", "2"))
    processes.append(host.run("team/gpu", "-k", "2", "--", "true"))
    host.until_waiting("team/gpu", 1)
    done = run("who", env=host.env)
    assert done.stdout.splitlines()[0].rstrip() == "team/gpu of cluster fairgate: 2 of this host inside, 1 waiting"
    assert str(holder.pid) in done.stdout
    assert "of cluster" not in run("who", "other", env=host.env).stdout
    [cluster] = json.loads(run("who", "--json", env=host.env).stdout)["clusters"]
    [gate] = cluster.pop("gates")
    standing = described(host.rooms)
    assert standing is not None
    assert cluster == {"name": "fairgate", "id": standing.cluster_id, "folder": host.rooms, "peer": peer.pid,
                       "guarantee": "lease"}  # fmt: skip
    assert (gate["name"], gate["k"], len(gate["inside"]), len(gate["waiting"])) == ("team/gpu", 2, 2, 1)
    status = run("peer", "status", env=host.env)
    assert (status.returncode, f"unix:{host.folder}/0" in status.stdout) == (0, True), status.stderr
    assert run("where", env=host.env).stdout.splitlines()[-1].endswith(host.rooms)
    peer.kill()
    peer.wait()
    assert "1 waiting (its peer is gone)" in run("who", env=host.env).stdout


def test_guests_are_told_that_no_majority_answers(host: GuestHost, processes: Processes) -> None:
    processes.append(host.peer())
    processes.append(host.inside("gpu"))
    standing = described(host.rooms)
    assert standing is not None
    standing.guarantee = NO_MAJORITY
    describe(standing)
    done = run("run", "cpu", "--join", host.seed, "--", "true", env=host.env)
    told = "most voters of cluster fairgate do not answer: nobody is let in until they do"
    assert (done.returncode, done.stderr) == (0, f"fairgate: {told}\n")
    assert "1 of this host inside, 0 waiting (no majority)" in run("who", env=host.env | {"COLUMNS": "160"}).stdout
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FAIRGATE_DIR", host.env["FAIRGATE_DIR"])
        with sync.join(host.seed) as peer:
            assert peer.lock("gpu").statistics().guarantee == NO_MAJORITY


def test_a_room_of_a_cluster_is_no_gate_of_this_host(host: GuestHost, processes: Processes) -> None:
    processes += [host.peer(), host.inside("gpu")]
    path = f"{host.rooms}/gpu.gate"
    done = run("run", path, "--", "true", env=host.env)
    assert done.returncode == 2
    assert done.stderr == f"fairgate: cannot use {path}: it is a gate of a cluster: join that\n"


def test_many_guests_change_the_roster_a_few_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """200 requests at once, and again: seats are doubled, and kept."""
    tmp_path.chmod(0o700)
    monkeypatch.setenv("FAIRGATE_DIR", str(tmp_path / "host"))

    async def all_enter(seed: str) -> None:
        async with fairgate.join(seed) as peer:
            gate = peer.semaphore("gpu", 3)

            async def enter() -> None:
                async with gate:
                    pass

            await asyncio.gather(*[enter() for _ in range(200)])

    with sync.join(listen=f"unix:{tmp_path}/0") as keeper, Guests(keeper.engine, "fairgate"):
        views = []
        for _ in range(2):
            asyncio.run(all_enter(keeper.engine.identity.address))
            views.append(keeper.engine.gates["gpu"].counts.views)
        print(f"views: {views}")
        assert views[0] <= 8
        assert views[1] == views[0]
