"""fairgate's gates and alternatives behind one interface, and the servers that they need."""

import base64
import fcntl
import http.client
import json
import os
import shutil
import socket
import subprocess
import time
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

HERE = os.environ.get("BENCH_SERVER", "127.0.0.1")  # where the server is, and listens
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
    """The waiting room of this host, or a cluster over Unix sockets that runs a protocol."""

    def __init__(self, k: int, protocol: str | None = None) -> None:
        from fairgate import sync  # noqa: PLC0415 (each worker needs only one of these)

        seeds = [] if protocol is None else [seed_of(folder())]
        self.peer = sync.join(*seeds)
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


def folder() -> Path:
    """The directory of one benchmark run."""
    return Path(os.environ["FAIRGATE_DIR"])


def seed_of(folder: Path) -> str:
    return f"unix:{folder}/0"


class HostGate(Fairgate):
    """A gate of a cluster between hosts, entered as a guest of this host's standing peer (bench/hosts.py)."""

    def __init__(self, k: int, protocol: str) -> None:
        from fairgate import sync  # noqa: PLC0415

        self.peer = sync.join(os.environ["BENCH_PEER"], cluster=os.environ["BENCH_CLUSTER"])
        self.gate = self.peer.semaphore("bench", k, protocol)


class Flock(Gate):
    """flock(2), which wakes waiters in no particular order."""

    def __init__(self) -> None:
        self.file = (folder() / "flock").open("w")

    def acquire(self) -> None:
        fcntl.flock(self.file, fcntl.LOCK_EX)

    def release(self) -> None:
        fcntl.flock(self.file, fcntl.LOCK_UN)


class FileLock(Gate):
    """The library filelock. It polls; its default of 50 ms would leave the lock idle most of the time."""

    def __init__(self) -> None:
        import filelock  # noqa: PLC0415

        self.lock = filelock.FileLock(folder() / "filelock", poll_interval=0.001)

    def acquire(self) -> None:
        self.lock.acquire()

    def release(self) -> None:
        self.lock.release()


class PosixSemaphore(Gate):
    """A semaphore of the kernel. If its holder is killed, the permit stays taken."""

    def __init__(self, k: int) -> None:
        import posix_ipc  # noqa: PLC0415

        self.semaphore = posix_ipc.Semaphore(semaphore_name(folder()), posix_ipc.O_CREAT, initial_value=k)

    def acquire(self) -> None:
        self.semaphore.acquire()

    def release(self) -> None:
        self.semaphore.release()

    def close(self) -> None:
        self.semaphore.close()


def semaphore_name(folder: Path) -> str:
    return f"/{folder.parent.name}"


class Sem(Gate):
    """GNU sem only runs commands: each entry is a command that stays until its input ends."""

    def __init__(self, k: int) -> None:
        self.words = ["sem", "--id", folder().parent.name, "--fg", "--ungroup", f"-j{k}", "echo in; read line"]
        self.environ = os.environ | {"HOME": str(folder())}  # it keeps its files there

    def acquire(self) -> None:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            self.words, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, env=self.environ
        )
        assert self.process.stdout is not None
        if not self.process.stdout.readline():
            raise RuntimeError("sem has failed")

    def release(self) -> None:
        self.process.communicate()


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


CLUSTER = " cluster"  # after the name of a protocol
HOSTS = " hosts"  # the same, between hosts


def open_gate(kind: str, k: int, port: int) -> Gate:
    if kind.endswith(CLUSTER):
        return Fairgate(k, kind.removesuffix(CLUSTER))
    if kind.endswith(HOSTS):
        return HostGate(k, kind.removesuffix(HOSTS))
    return GATES[kind](k, port)


GATES: dict[str, Callable[[int, int], Gate]] = {
    "fairgate": lambda k, port: Fairgate(k),
    "flock": lambda k, port: Flock(),
    "filelock": lambda k, port: FileLock(),
    "posix_ipc": lambda k, port: PosixSemaphore(k),
    "GNU sem": lambda k, port: Sem(k),
    "redis-py": lambda k, port: RedisPy(port),
    "python-redis-lock": lambda k, port: RedisLock(port),
    "kazoo": lambda k, port: Kazoo(port, k),
    "etcd": lambda k, port: Etcd(port),
}
SEMAPHORES = ("posix_ipc", "GNU sem", "kazoo")  # of these alternatives, k may be more than 1
INSTALL = {  # program, module, and how to install them
    "flock": ("", "fcntl", ""),
    "filelock": ("", "filelock", "pip install filelock"),
    "posix_ipc": ("", "posix_ipc", "pip install posix_ipc"),
    "GNU sem": ("sem", "", "apt install parallel"),
    "redis-py": ("redis-server", "redis", "apt install redis-server; pip install redis"),
    "python-redis-lock": ("redis-server", "redis_lock", "apt install redis-server; pip install python-redis-lock"),
    "kazoo": ("java", "kazoo", "apt install zookeeper; pip install kazoo"),
    "etcd": ("etcd", "", "apt install etcd-server"),
}


def missing(kind: str) -> str:
    """How to install what this kind needs; empty if it is installed."""
    program, module, how = INSTALL.get(kind, ("", "", ""))
    found = (not program or shutil.which(program)) and (not module or find_spec(module))
    return "" if found else how


# The servers.

SERVERS = ("redis-py", "python-redis-lock", "kazoo", "etcd")
ZOOKEEPER_JARS = "/usr/share/java/*"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HERE, 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def server(kind: str, folder: Path) -> Iterator[int]:
    """Start what this kind needs in this directory, and yield the port of its server, or 0 if it has none."""
    if kind in SERVERS:
        port = free_port()
        quiet = subprocess.DEVNULL
        with subprocess.Popen(server_command(kind, folder, port), cwd=folder, stdout=quiet, stderr=quiet) as process:
            try:
                wait_for(port, process)
                yield port
            finally:
                process.terminate()
    elif kind.endswith(CLUSTER):
        from fairgate import sync  # noqa: PLC0415

        with sync.join(listen=seed_of(folder)):  # it keeps the list of peers
            yield 0
    else:
        yield 0
    if kind == "posix_ipc":
        import posix_ipc  # noqa: PLC0415

        posix_ipc.unlink_semaphore(semaphore_name(folder))


def server_command(kind: str, folder: Path, port: int, here: str = HERE) -> list[str]:
    if kind == "etcd":
        client, peer = f"http://{here}:{port}", f"http://{here}:{port + 1}"
        return [
            "etcd", "--data-dir", str(folder), "--listen-client-urls", client, "--advertise-client-urls", client,
            "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", f"default={peer}",
        ]  # fmt: skip
    if kind == "kazoo":
        config = folder / "zoo.cfg"
        config.write_text(
            f"dataDir={folder}\nclientPort={port}\nclientPortAddress={here}\nadmin.enableServer=false\ntickTime=2000\n"
        )
        main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
        return ["java", "-cp", ZOOKEEPER_JARS, main, str(config)]
    return [
        "redis-server",
        "--port",
        str(port),
        "--bind",
        here,
        "--protected-mode",
        "no",
        "--save",
        "",
        "--dir",
        str(folder),
    ]


def wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + READY_SECONDS
    while time.monotonic() < end and process.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex((HERE, port)) == 0:
                return
        time.sleep(0.05)
    raise RuntimeError(f"the server on port {port} did not start")
