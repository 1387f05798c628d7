"""Runs `fairgate ...` in real processes, and waits for what they do without sleeping."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from fairgate.live.cluster_options import ClusterOptions
from fairgate.live.directory import ClusterDirectory
from fairgate.live.inspect import look
from fairgate.room.host import look_at
from fairgate.room.place import locate
from tests.support.temporary import host_folder

FAIRGATE = (sys.executable, "-m", "fairgate")
SOON = 30  # seconds: a test that waits this long has failed
Say = Callable[..., tuple[int, str, str]]  # the fixture `say`
WAITS = "echo in; read line"  # a shell command that stays inside until its stdin is written to or closed


def start(*words: str, command: Sequence[str] = FAIRGATE, **more: Any) -> subprocess.Popen[bytes]:
    pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    return subprocess.Popen([*command, *words], bufsize=0, **pipes | ({} if "env" in more else at_home(words)) | more)


def run(*words: str, command: Sequence[str] = FAIRGATE, **more: Any) -> subprocess.CompletedProcess[str]:
    given = more if "env" in more else at_home(words) | more
    return subprocess.run([*command, *words], capture_output=True, text=True, timeout=SOON, check=False, **given)


def at_home(words: Sequence[str]) -> dict[str, Any]:
    """A peer of a cluster gets a directory of its own, as if it were on another host: it has no guests here."""
    if words[:1] != ("peer",) or not {"--create", "--join"} & set(words):
        return {}
    return {"env": os.environ | {"FAIRGATE_DIR": host_folder()}}


def line(process: subprocess.Popen[bytes]) -> str:
    """The next line that it prints."""
    assert process.stdout is not None
    assert select.select([process.stdout], [], [], SOON)[0], "it printed nothing"
    return process.stdout.readline().decode().rstrip("\n")


def inside(*words: str, **more: Any) -> subprocess.Popen[bytes]:
    """A `fairgate run ...` that is inside, and stays there until its stdin is closed."""
    process = start("run", *words, "--", "sh", "-c", WAITS, **more)
    assert line(process) == "in"
    return process


def end(process: subprocess.Popen[bytes]) -> int:
    """Closes its stdin, waits for its end, and returns its exit code."""
    process.communicate(timeout=SOON)
    return process.returncode


def standing(*words: str, **more: Any) -> tuple[subprocess.Popen[bytes], str]:
    """A `fairgate peer` of a cluster, and the address to join it at."""
    process = start("peer", *words, **more)
    return process, line(process).split(" at ")[1].split()[0]


def end_by(signum: int, process: subprocess.Popen[bytes]) -> tuple[int, str, str]:
    """Sends a signal; returns the exit code and the remaining output."""
    process.send_signal(signum)
    out, err = process.communicate(timeout=SOON)
    return process.returncode, out.decode(), err.decode()


def gate(name: str, seed: str = "") -> Any:
    """The gate in the cluster of the peer at address `seed`, or on this host; None if it is not in use."""
    if seed:
        return look(ClusterDirectory(ClusterOptions((seed,)))).gate(name)
    found = look_at(*locate(name))
    return found if found and found.in_use else None


def until(condition: Callable[[], Any]) -> Any:
    """Polls until the condition holds, for what cannot be waited for otherwise."""
    deadline = time.monotonic() + SOON
    while not (found := condition()):
        assert time.monotonic() < deadline, "the condition never held"
        time.sleep(0.005)
    return found


def until_waiting(name: str, count: int = 1, seed: str = "") -> Any:
    return until(lambda: (one := gate(name, seed)) is not None and len(one.waiting) == count and one)


class Watched:
    """A process that is not our child; its pidfd shows its end."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.file = os.pidfd_open(pid)

    def has_ended(self, seconds: float = SOON) -> bool:
        return bool(select.select([self.file], [], [], seconds)[0])

    def close(self) -> None:
        os.close(self.file)


def members(folder: Path) -> str:
    return (folder / "members.json").read_text()
