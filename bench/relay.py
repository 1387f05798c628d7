"""A relay that holds bytes back: `python -m bench.relay LISTEN TARGET SECONDS`.

It has one thread, because threads of Python would wait for each other's turn whenever two messages come close together.
"""

from __future__ import annotations

import ctypes
import select
import socket
import subprocess
import sys
import time
from collections import deque
from contextlib import suppress
from statistics import median

PINGS = 100
PR_SET_TIMERSLACK = 29
ECHO = """
import socket, sys
listener = socket.create_server((sys.argv[1], 7499))
print("ready", flush=True)
other, _ = listener.accept()
other.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
while data := other.recv(1):
    other.sendall(data)
"""
PING = """
import socket, sys, time
other = socket.create_connection((sys.argv[1], 7498))
other.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
for _ in range(int(sys.argv[2])):
    time.sleep(float(sys.argv[3]))
    begin = time.perf_counter()
    other.sendall(b"x")
    other.recv(1)
    print((time.perf_counter() - begin) / 2, flush=True)
"""


def relay(listen: str, target: str, delay: float) -> None:
    """All bytes are held for the same time, so they are due in the order in which they came."""
    sleep_precisely()
    listener = socket.create_server(address(listen))
    print("ready", flush=True)
    others: dict[socket.socket, socket.socket] = {}  # what is read here is written there
    held: deque[tuple[float, socket.socket, bytes]] = deque()
    while True:
        left = max(held[0][0] - time.monotonic(), 0) if held else None
        ready, _, _ = select.select([listener, *others], [], [], left)
        due = time.monotonic() + delay
        for src in ready:
            if src is listener:
                others |= connected(listener, target)
            else:
                data = received(src)
                held.append((due, others[src], data))
                if not data:
                    del others[src]
        while held and held[0][0] <= time.monotonic():
            _, dst, data = held.popleft()
            give(dst, data)


def sleep_precisely() -> None:
    """The kernel may delay the end of any sleep by the timer slack, which is 50 us unless a process asks for less."""
    ctypes.CDLL(None).prctl(PR_SET_TIMERSLACK, 1)


def connected(listener: socket.socket, target: str) -> dict[socket.socket, socket.socket]:
    one, _ = listener.accept()
    try:
        other = socket.create_connection(address(target))
    except OSError:  # nobody listens there yet
        one.close()
        return {}
    for sock in (one, other):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return {one: other, other: one}


def received(src: socket.socket) -> bytes:
    try:
        return src.recv(65536)
    except OSError:
        return b""


def give(dst: socket.socket, data: bytes) -> None:
    with suppress(OSError):
        if data:
            dst.sendall(data)
        else:
            dst.shutdown(socket.SHUT_WR)


def address(text: str) -> tuple[str, int]:
    host, port = text.rsplit(":", 1)
    return host, int(port)


def one_way(there: list[str], here: list[str], ip: str, delay: float, rest: float) -> float:
    """Seconds that a byte takes through a relay to another host, one way: half of the median round trip.

    Before every round trip everything rests for so long. Waking up takes longer then, as with any load that rests.
    """
    pipe = subprocess.PIPE
    python = sys.executable
    with (
        subprocess.Popen([*there, python, "-c", ECHO, ip], stdout=pipe) as echo,
        subprocess.Popen(
            [*there, python, "-m", "bench.relay", f"{ip}:7498", f"{ip}:7499", str(delay)], stdout=pipe
        ) as between,
    ):
        for process in (echo, between):
            assert process.stdout is not None
            process.stdout.readline()
        command = [*here, python, "-c", PING, ip, str(PINGS), str(rest)]
        found = subprocess.run(command, capture_output=True, text=True, check=True)
        between.terminate()
        echo.terminate()
    return median([float(line) for line in found.stdout.split()])


if __name__ == "__main__":
    relay(sys.argv[1], sys.argv[2], float(sys.argv[3]))
