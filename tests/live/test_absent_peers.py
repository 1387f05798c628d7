"""Guests of a host whose standing peer is not running: it was killed, it left, or it is just being started."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairgate import sync
from fairgate.errors import BadInput
from fairgate.room import clusters
from fairgate.room.clusters import described, find_standing
from tests.live.commands import SOON, WAITS, line, run, start, until
from tests.live.guests import GuestHost, ended

Processes = list[subprocess.Popen[bytes]]
NOT_RUNNING = "fairgate: this host's standing peer is not running"


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GuestHost:
    host = GuestHost(tmp_path)
    monkeypatch.setenv("FAIRGATE_DIR", host.env["FAIRGATE_DIR"])
    return host


@pytest.fixture
def processes() -> Iterator[Processes]:
    started: Processes = []
    with ended(started):
        yield started


def waiting(host: GuestHost) -> str:
    return f"{NOT_RUNNING}; waiting (if it has none any more, remove {host.rooms})\n"


def had_a_peer(host: GuestHost, processes: Processes, how: signal.Signals) -> None:
    processes.append(peer := host.peer())
    peer.send_signal(how)
    peer.communicate(timeout=SOON)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize("words", [(), ("-w", str(SOON))])
def test_a_command_waits_until_the_peer_is_back(
    host: GuestHost, processes: Processes, how: signal.Signals, words: tuple[str, ...]
) -> None:
    had_a_peer(host, processes, how)
    processes.append(first := host.run("gpu", *words, "--", "sh", "-c", WAITS))
    host.until_waiting("gpu", 1)
    processes.append(second := host.run("gpu", *words, "--", "sh", "-c", WAITS))
    host.until_waiting("gpu", 2)
    processes.append(host.peer())
    for guest in (first, second):  # in the order in which they came
        assert line(guest) == "in"
        _, told = guest.communicate(b"\n", timeout=SOON)
        assert (guest.returncode, told.decode()) == (0, waiting(host))


def test_the_wait_for_the_peer_may_be_over(host: GuestHost, processes: Processes) -> None:
    had_a_peer(host, processes, signal.SIGKILL)
    done = run("run", "gpu", "--join", host.seed, "-w", "0.2", "-E", "7", "--", "true", env=host.env)
    assert (done.returncode, done.stderr) == (7, waiting(host))
    for words in (("-n",), ("-w", "0")):
        done = run("run", "gpu", "--join", host.seed, *words, "-E", "7", "--", "true", env=host.env)
        assert (done.returncode, done.stderr) == (7, f"{NOT_RUNNING}\n")


def test_a_signal_ends_the_wait(host: GuestHost, processes: Processes) -> None:
    had_a_peer(host, processes, signal.SIGKILL)
    processes.append(guest := host.run("gpu", "--", "true"))
    host.until_waiting("gpu", 1)
    guest.terminate()
    assert guest.wait(SOON) == 128 + signal.SIGTERM
    host.until_waiting("gpu", 0)


def test_a_command_waits_for_a_peer_that_has_not_joined_yet(host: GuestHost, processes: Processes) -> None:
    """The first time it is started, its members do not answer for a while."""
    seed = f"unix:{host.folder}/1"
    processes.append(start("peer", "--join", seed, "--listen", host.seed, "--join-timeout", str(SOON), env=host.env))
    until(lambda: described(host.rooms))
    for address in (seed, host.seed):
        done = run("run", "gpu", "--join", address, "-w", "0.2", "--", "true", env=host.env)
        assert (done.returncode, done.stderr) == (1, waiting(host))
    processes.append(start("peer", "--create", "--listen", seed, env=host.env | {"FAIRGATE_DIR": f"{host.folder}/1d"}))
    assert run("run", "gpu", "--join", seed, "-w", str(SOON), "--", "true", env=host.env).returncode == 0


def test_a_gate_in_python_waits_for_the_peer(host: GuestHost, processes: Processes) -> None:
    had_a_peer(host, processes, signal.SIGKILL)
    with sync.join(host.seed) as peer:
        gate = peer.lock("gpu")
        assert gate.acquire(timeout=0.05) is None
        processes.append(host.peer())
        permit = gate.acquire(SOON)
        assert permit is not None
        permit.release()


def test_a_process_with_an_address_of_its_own_does_not_wait(host: GuestHost, processes: Processes) -> None:
    had_a_peer(host, processes, signal.SIGKILL)
    own = ("--listen", f"unix:{host.folder}/2", "--join-timeout", "0.1")
    done = run("run", "gpu", "--join", host.seed, *own, "--", "true", env=host.env)
    assert done.returncode == 2
    assert "could not join within 0.1 s" in done.stderr


def test_an_address_that_is_no_string_is_refused(host: GuestHost, processes: Processes) -> None:
    processes.append(host.peer())
    with pytest.raises(BadInput, match="cannot read the address b'nowhere:7400': write a string"):
        sync.join(b"nowhere:7400")  # type: ignore[arg-type]


def test_an_administrator_has_made_a_place_for_a_peer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Since the host was booted, nobody has started it."""
    folder = tmp_path / clusters.CLUSTERS / "fairgate"
    folder.mkdir(parents=True)
    monkeypatch.setattr(clusters, "RUN", str(tmp_path))
    monkeypatch.setattr(clusters, "parents", lambda: [str(folder.parent)])
    found = find_standing(("10.0.0.5:7400",))
    assert found is not None
    assert (found.folder, found.is_alive()) == (str(folder), False)
    assert find_standing(("10.0.0.5:7400",), "other") is None
    (folder / clusters.DESCRIPTION).touch()  # of another version, or of somebody else
    assert find_standing(("10.0.0.5:7400",)) is None
    os.unlink(folder / clusters.DESCRIPTION)
    monkeypatch.setattr(clusters, "RUN", "/nowhere")  # a user's own directory, which an earlier version has left
    assert find_standing(("10.0.0.5:7400",)) is None
