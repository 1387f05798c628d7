"""Gates for the adapters: real ones of this host, in the directory that FAIRGATE_DIR names."""

from __future__ import annotations

import os
import time
from collections import deque
from pathlib import Path
from typing import Any
from uuid import uuid4

from fairgate import sync
from fairgate.sync import Permit, Semaphore

_peers: dict[int, sync.Peer] = {}  # by process: a forked child joins by itself
OPENED = "PEERS_OPENED"  # a file that gets a byte for every gate that is opened
READERS = 64  # a shared lock takes one of so many slots, an exclusive one all of them


def peer() -> sync.Peer:
    """That of this process."""
    pid = os.getpid()
    if pid not in _peers:
        _peers[pid] = sync.join()
    return _peers[pid]


def count_opened() -> int:
    """How many gates this process and its children have opened: a test that opens none shows nothing."""
    counter = Path(os.environ[OPENED])
    return counter.stat().st_size if counter.exists() else 0


def gate(name: str, k: int = 1) -> Semaphore:
    return peer_gate(peer(), name, k)


def peer_gate(of: sync.Peer, name: str, k: int) -> Semaphore:
    with Path(os.environ[OPENED]).open("ab") as counter:
        counter.write(b".")
    return of.semaphore(name, k)


def new_name() -> str:
    return uuid4().hex


def file_gate(path: str, k: int = 1) -> Semaphore:
    """The gate whose file is at this path, as file locks are. They create missing directories."""
    path = os.path.abspath(path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    return gate(path, k)


def holder(name: str) -> Any:
    """Who is inside the gate of this name, or None."""
    return next(iter(gate(name).holders()), None)


def seconds_left(name: str) -> float | None:
    """How long the lease of its holder lasts; None without a lease."""
    found = holder(name)
    return None if found is None or found.deadline is None else found.deadline - time.time()


class Permits:
    """The permits that one lock object has: any thread may release them, the oldest first."""

    def __init__(self) -> None:
        self.all: deque[Permit] = deque()

    def add(self, permit: Permit | None) -> bool:
        if permit is not None:
            self.all.append(permit)
        return permit is not None

    def release(self, of: Semaphore) -> None:
        """As `Semaphore.release`, which raises BadInput if there is none."""
        if self.all:
            self.all.popleft().release()
        else:
            of.release()
