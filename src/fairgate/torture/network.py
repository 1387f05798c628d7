"""The network between the hosts of a torture: network namespaces with a router between them, or loopback.

With namespaces, any direction between any two hosts can be cut: the router drops the packets without a word, as a
broken cable does. This needs root. Without it all hosts share loopback, each with a port of its own, and nothing can be
cut.
"""

import os
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from signal import SIGINT, SIGTERM
from typing import Protocol

from fairgate.errors import BadInput

PREFIX = "fairgate-torture"
NAMESPACES = Path("/run/netns")
PORT = 7400


class Network(Protocol):
    can_cut: bool

    def address(self, host: int) -> str:
        """Where the peer of this host listens."""

    def entered(self, host: int) -> list[str]:
        """What to put in front of a command to run it on this host."""

    def cut(self, src: int, dst: int) -> None: ...

    def heal(self, src: int, dst: int) -> None: ...

    def close(self) -> None: ...


def make_network(hosts: int) -> Network:
    return Namespaces(hosts) if os.geteuid() == 0 else Loopback(hosts)


class Loopback:
    can_cut = False

    def __init__(self, hosts: int) -> None:
        self.first = 20_000 + os.getpid() % 20_000

    def address(self, host: int) -> str:
        return f"127.0.0.1:{self.first + host}"

    def entered(self, host: int) -> list[str]:
        return []

    def cut(self, src: int, dst: int) -> None:
        raise NotImplementedError

    def heal(self, src: int, dst: int) -> None:
        raise NotImplementedError

    def close(self) -> None:
        pass


class Namespaces:
    can_cut = True

    def __init__(self, hosts: int) -> None:
        self.name = f"{PREFIX}-{os.getpid()}"
        self.made: list[str] = []
        self.cuts: Counter[tuple[int, int]] = Counter()  # how many faults cut this direction
        sweep()
        try:
            self.router = self.make("router")
            forward = "echo 1 > /proc/sys/net/ipv4/ip_forward"  # without sysctl, which not every PATH has
            ip("netns", "exec", self.router, "sh", "-c", forward)
            self.hosts = [self.make_host(number) for number in range(hosts)]
        except BaseException:
            self.close()
            raise

    def make(self, name: str) -> str:
        full = f"{self.name}-{name}"
        with signals_wait():
            ip("netns", "add", full)
            self.made.append(full)
        ip("-n", full, "link", "set", "lo", "up")
        return full

    def make_host(self, number: int) -> str:
        host, at_router = self.make(str(number)), f"host{number}"
        ip("link", "add", at_router, "netns", self.router, "type", "veth", "peer", "name", "eth0", "netns", host)
        ip("-n", self.router, "addr", "add", f"{subnet(number)}.1/30", "dev", at_router)
        ip("-n", self.router, "link", "set", at_router, "up")
        ip("-n", host, "addr", "add", f"{subnet(number)}.2/30", "dev", "eth0")
        ip("-n", host, "link", "set", "eth0", "up")
        ip("-n", host, "route", "add", "default", "via", f"{subnet(number)}.1")
        return host

    def ip_of(self, host: int) -> str:
        return f"{subnet(host)}.2"

    def address(self, host: int) -> str:
        return f"{self.ip_of(host)}:{PORT}"

    def entered(self, host: int) -> list[str]:
        return ["ip", "netns", "exec", self.hosts[host]]

    def cut(self, src: int, dst: int) -> None:
        self.cuts[src, dst] += 1
        if self.cuts[src, dst] == 1:
            self.rule("add", src, dst)

    def heal(self, src: int, dst: int) -> None:
        self.cuts[src, dst] -= 1
        if self.cuts[src, dst] == 0:
            self.rule("del", src, dst)

    def rule(self, what: str, src: int, dst: int) -> None:
        ip("-n", self.router, "rule", what, "from", self.ip_of(src), "to", self.ip_of(dst), "blackhole")

    def close(self) -> None:
        for name in self.made:
            subprocess.run(["ip", "netns", "delete", name], check=False, capture_output=True)
        self.made = []


@contextmanager
def signals_wait() -> Iterator[None]:
    """SIGINT and SIGTERM take effect at the end of the block: whatever is made in it is recorded, and can be ended.

    They are not blocked, because a new process would inherit that."""
    came: list[int] = []
    before = {each: signal.signal(each, lambda number, _: came.append(number)) for each in (SIGINT, SIGTERM)}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
        for number in came[:1]:
            os.kill(os.getpid(), number)


def subnet(host: int) -> str:
    return f"10.213.{host}"


def sweep() -> None:
    """Removes the namespaces of tortures that were killed."""
    for path in NAMESPACES.glob(f"{PREFIX}-*-*"):
        pid = path.name.removeprefix(f"{PREFIX}-").partition("-")[0]
        if not Path(f"/proc/{pid}").exists():
            subprocess.run(["ip", "netns", "delete", path.name], check=False, capture_output=True)


def ip(*arguments: str) -> None:
    run(["ip", *arguments])


def run(command: Sequence[str]) -> None:
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
    except FileNotFoundError:
        raise BadInput("network namespaces need the command ip: install the package iproute2") from None
    except subprocess.CalledProcessError as wrong:
        why = (wrong.stderr or "").strip().splitlines()[-1:] or [f"exit code {wrong.returncode}"]
        raise BadInput(f"cannot make a network for the torture: {' '.join(command)}: {why[0]}") from None
