"""Alternative locks and semaphores behind one interface, and the servers that they need."""

from __future__ import annotations

import base64
import http.client
import json
import os
import shutil
import socket
import subprocess
import time
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

HERE = "127.0.0.1"
LEASE_SECONDS = 60
READY_SECONDS = 60.0


class Gate:
    """A lock or semaphore that a process contends for."""

    @abstractmethod
    def acquire(self) -> None: ...

    @abstractmethod
    def release(self) -> None: ...

    def close(self) -> None:
        pass

    def messages(self) -> int:
        return 0


class Fairgate(Gate):
    def __init__(self, k: int, protocol: str | None) -> None:
        from fairgate import sync  # noqa: PLC0415 (each worker needs only one of these)

        self.peer = sync.join()
        self.gate = self.peer.semaphore("bench", k, protocol)

    def acquire(self) -> None:
        permit = self.gate.acquire()
        assert permit is not None
        self.permit = permit

    def release(self) -> None:
        self.permit.release()

    def messages(self) -> int:
        return self.gate.statistics().messages_sent

    def close(self) -> None:
        self.peer.close()


class WaitingRoom(Gate):
    def __init__(self, k: int) -> None:
        from fairgate.room.room import Room  # noqa: PLC0415

        folder = os.environ["FAIRGATE_DIR"]
        os.makedirs(folder, exist_ok=True)
        self.room = Room(folder, "bench", k)

    def acquire(self) -> None:
        permit = self.room.acquire()
        assert permit is not None
        self.permit = permit

    def release(self) -> None:
        self.permit.release()

    def close(self) -> None:
        self.room.close()


class RedisPy(Gate):
    """redis-py's Lock, which polls every millisecond."""

    def __init__(self, port: int) -> None:
        import redis  # noqa: PLC0415

        client = redis.Redis(HERE, port)
        self.lock = client.lock("bench", timeout=LEASE_SECONDS, sleep=0.001)

    def acquire(self) -> None:
        self.lock.acquire()

    def release(self) -> None:
        self.lock.release()


class RedisLock(RedisPy):
    """python-redis-lock, which waits on a Redis list."""

    def __init__(self, port: int) -> None:
        import redis  # noqa: PLC0415
        import redis_lock  # noqa: PLC0415

        self.lock = redis_lock.Lock(redis.Redis(HERE, port), "bench", expire=LEASE_SECONDS)


class Kazoo(Gate):
    def __init__(self, port: int, k: int) -> None:
        from kazoo.client import KazooClient  # noqa: PLC0415

        self.client = KazooClient(f"{HERE}:{port}")
        self.client.start(timeout=READY_SECONDS)
        self.lock: Any = self.client.Lock("/bench") if k == 1 else self.client.Semaphore("/bench-many", max_leases=k)

    def acquire(self) -> None:
        self.lock.acquire()

    def release(self) -> None:
        self.lock.release()

    def close(self) -> None:
        self.client.stop()


class Etcd(Gate):
    """etcd's own lock service, through its JSON gateway."""

    def __init__(self, port: int) -> None:
        self.link = http.client.HTTPConnection(HERE, port)
        self.link.connect()
        self.link.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.lease = self.ask("/v3/lease/grant", {"TTL": LEASE_SECONDS})["ID"]

    def ask(self, path: str, what: dict[str, Any]) -> Any:
        self.link.request("POST", path, json.dumps(what))
        return json.loads(self.link.getresponse().read())

    def acquire(self) -> None:
        name = base64.b64encode(b"bench").decode()
        self.key = self.ask("/v3/lock/lock", {"name": name, "lease": self.lease})["key"]

    def release(self) -> None:
        self.ask("/v3/lock/unlock", {"key": self.key})


def open_gate(kind: str, k: int, port: int) -> Gate:
    if kind == "room":
        return WaitingRoom(k)
    if kind == "redis-py":
        return RedisPy(port)
    if kind == "python-redis-lock":
        return RedisLock(port)
    if kind == "kazoo":
        return Kazoo(port, k)
    if kind == "etcd":
        return Etcd(port)
    return Fairgate(k, None if kind == "fairgate" else kind)


# The servers.

INSTALL = {
    "redis-py": ("redis-server", "redis", "apt install redis-server; pip install redis"),
    "python-redis-lock": ("redis-server", "redis_lock", "apt install redis-server; pip install python-redis-lock"),
    "kazoo": ("java", "kazoo", "apt install zookeeper; pip install kazoo"),
    "etcd": ("etcd", "http", "apt install etcd-server"),
}
ZOOKEEPER_JARS = "/usr/share/java/*"


def missing(kind: str) -> str:
    """How to install what this kind needs; empty if it is installed."""
    program, module, how = INSTALL[kind]
    return "" if shutil.which(program) and find_spec(module) else how


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HERE, 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def server(kind: str, folder: Path) -> Iterator[int]:
    """Start the server that this kind needs and yield its port, or 0 if it needs none."""
    if kind not in INSTALL:
        yield 0
        return
    port = free_port()
    folder.mkdir()
    with subprocess.Popen(
        command(kind, folder, port), cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            wait_for(port, process)
            yield port
        finally:
            process.terminate()


def command(kind: str, folder: Path, port: int) -> list[str]:
    if kind == "etcd":
        client, peer = f"http://{HERE}:{port}", f"http://{HERE}:{free_port()}"
        return [
            "etcd", "--data-dir", str(folder), "--listen-client-urls", client, "--advertise-client-urls", client,
            "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", f"default={peer}",
        ]  # fmt: skip
    if kind == "kazoo":
        config = folder / "zoo.cfg"
        config.write_text(
            f"dataDir={folder}\nclientPort={port}\nclientPortAddress={HERE}\nadmin.enableServer=false\ntickTime=2000\n"
        )
        main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
        return ["java", "-cp", ZOOKEEPER_JARS, main, str(config)]
    return ["redis-server", "--port", str(port), "--bind", HERE, "--save", "", "--dir", str(folder)]


def wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + READY_SECONDS
    while time.monotonic() < end and process.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex((HERE, port)) == 0:
                return
        time.sleep(0.05)
    raise RuntimeError(f"the server on port {port} did not start")
