"""Watches the ghosts that this peer hosts, and reports when their processes are gone (net/occupancy.py).

The kernel does not notify us when the last process of a group ends, so we poll; ghosts are rare.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path

from fairgate.net import occupancy

ASK_SECONDS = 0.02


class Ghosts:
    def __init__(self, folder: Path, on_over: Callable[[str, int], None]) -> None:
        self.folder = folder
        self.on_over = on_over
        self.gates: dict[int, str] = {}
        self.timer: asyncio.TimerHandle | None = None

    def watch(self, ghosts: dict[int, str]) -> None:
        """Watches exactly these ghosts, given as {seat: gate}."""
        self.gates = ghosts
        if ghosts and self.timer is None:
            self.wait()

    def wait(self) -> None:
        self.timer = asyncio.get_running_loop().call_later(ASK_SECONDS, self.look)

    def look(self) -> None:
        self.timer = None
        for ident, gate in list(self.gates.items()):
            if occupancy.read(occupancy.path_of(self.folder, ident)) is None:
                del self.gates[ident]
                self.on_over(gate, ident)
        if self.gates:
            self.wait()

    def close(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
