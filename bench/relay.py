"""A relay that holds bytes back: `python -m bench.relay LISTEN TARGET SECONDS`.

Each direction of a connection has a thread that reads and one that writes, so that bytes which come close together
also leave close together. Sleeping in a thread is more precise than the timers of an event loop.
"""

from __future__ import annotations

import queue
import socket
import subprocess
import sys
import threading
import time
from statistics import median

PINGS = 200
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
    begin = time.perf_counter()
    other.sendall(b"x")
    other.recv(1)
    print((time.perf_counter() - begin) / 2, flush=True)
"""


def relay(listen: str, target: str, delay: float) -> None:
    listener = socket.create_server(address(listen))
    print("ready", flush=True)
    while True:
        one, _ = listener.accept()
        try:
            other = socket.create_connection(address(target))
        except OSError:  # nobody listens there yet
            one.close()
            continue
        for sock in (one, other):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        pass_on(one, other, delay)
        pass_on(other, one, delay)


def pass_on(src: socket.socket, dst: socket.socket, delay: float) -> None:
    held: queue.SimpleQueue[tuple[float, bytes]] = queue.SimpleQueue()
    threading.Thread(target=take, args=(src, held, delay), daemon=True).start()
    threading.Thread(target=give, args=(dst, held), daemon=True).start()


def take(src: socket.socket, held: queue.SimpleQueue[tuple[float, bytes]], delay: float) -> None:
    data = b"x"
    while data:
        try:
            data = src.recv(65536)
        except OSError:
            data = b""
        held.put((time.monotonic() + delay, data))


def give(dst: socket.socket, held: queue.SimpleQueue[tuple[float, bytes]]) -> None:
    while True:
        due, data = held.get()
        time.sleep(max(due - time.monotonic(), 0))
        try:
            if not data:
                dst.shutdown(socket.SHUT_WR)
                return
            dst.sendall(data)
        except OSError:
            return


def address(text: str) -> tuple[str, int]:
    host, port = text.rsplit(":", 1)
    return host, int(port)


def one_way(there: list[str], here: list[str], ip: str, delay: float) -> float:
    """Seconds that a byte takes through a relay to another host, one way: half of the median round trip."""
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
        found = subprocess.run([*here, python, "-c", PING, ip, str(PINGS)], capture_output=True, text=True, check=True)
        between.terminate()
        echo.terminate()
    return median([float(line) for line in found.stdout.split()])


if __name__ == "__main__":
    relay(sys.argv[1], sys.argv[2], float(sys.argv[3]))
