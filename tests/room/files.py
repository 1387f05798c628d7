"""Gate files for tests: how they are created, read, replaced and refused."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from fairgate.errors import BadInput
from fairgate.room.room import Room


def mode(path: str) -> int:
    return os.stat(path).st_mode & 0o777


def gate(folder: str) -> Path:
    return Path(folder) / "g.gate"


def bell(folder: str) -> str:
    (name,) = [name for name in os.listdir(folder) if name.endswith(".bell")]
    return f"{folder}/{name}"


def store(path: Path, at: int, value: int) -> None:
    data = bytearray(path.read_bytes())
    data[8 * at : 8 * at + 8] = value.to_bytes(8, "little", signed=True)
    path.write_bytes(data)


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.002)


def refusal(folder: str, name: str = "g") -> str:
    with pytest.raises(BadInput) as refused:
        Room(folder, name, 1)
    assert "\n" not in str(refused.value)
    return str(refused.value)


def opened(folder: str) -> Callable[[], str]:
    """For another process: open the gate, and say with what mode its file and its bell are there."""

    def work() -> str:
        with Room(folder, "g", 1) as room:
            permit = room.acquire(timeout=0)
            return f"{permit is not None} {mode(str(gate(folder))):o} {mode(bell(folder)):o}"

    return work


def replaced(path: Path, create: Callable[[Path], object]) -> None:
    path.unlink()
    create(path)


def listen(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(str(path))
