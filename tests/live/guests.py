"""Standing peers with guests, in real processes: a cluster, and processes of this host that wait in its rooms."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fairgate.room.clusters import CLUSTERS, file_name
from fairgate.room.host import GateView, look_at
from tests.live.commands import line, start, until

NAME = "fairgate"


class GuestHost:
    """A directory that stands for a host, with a standing peer in a cluster over Unix sockets."""

    def __init__(self, folder: Path) -> None:
        folder.chmod(0o700)
        self.folder = folder
        self.env = os.environ | {"FAIRGATE_DIR": str(folder / "host"), "COLUMNS": "160"}
        self.seed = f"unix:{folder}/0"
        self.rooms = f"{folder}/host/{CLUSTERS}/{NAME}"

    def peer(self, *words: str) -> subprocess.Popen[bytes]:
        """The standing peer, once it lets guests in."""
        process = self.start_peer(*words)
        assert "is a peer" in line(process)
        return process

    def start_peer(self, *words: str) -> subprocess.Popen[bytes]:
        return start("peer", "--create", "--listen", self.seed, *words, env=self.env)

    def run(self, *words: str, **more: Any) -> subprocess.Popen[bytes]:
        return start("run", words[0], "--join", self.seed, *words[1:], env=self.env, **more)

    def inside(self, *words: str) -> subprocess.Popen[bytes]:
        """A guest that is inside, and stays there until its stdin is closed."""
        process = self.run(*words, "--", "sh", "-c", "echo in; read line")
        assert line(process) == "in"
        return process

    def view(self, gate: str) -> GateView | None:
        return look_at(self.rooms, file_name(gate))

    def until_waiting(self, gate: str, count: int) -> None:
        until(lambda: (found := self.view(gate)) is not None and len(found.waiting) == count)

    def until_inside(self, gate: str, count: int) -> None:
        until(lambda: (found := self.view(gate)) is not None and len(found.inside) == count)


def end(*processes: subprocess.Popen[bytes]) -> None:
    for process in processes:
        if process.poll() is None:
            process.send_signal(signal.SIGCONT)
            process.kill()
        process.communicate(timeout=30)


@contextmanager
def ended(processes: list[subprocess.Popen[bytes]]) -> Iterator[None]:
    """At the end all of them are killed."""
    try:
        yield
    finally:
        end(*processes)
