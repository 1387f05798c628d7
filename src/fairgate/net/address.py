"""Addresses of peers, `unix:/path/to/socket` or `host:port`, and the sockets that listen on them."""

import ipaddress
import os
import socket
from dataclasses import dataclass
from pathlib import Path

from fairgate.errors import BadInput

BACKLOG = 128
LONGEST_PATH = 107  # bytes in the path of a Unix socket on Linux, without the terminating zero


@dataclass(frozen=True)
class UnixAddress:
    path: str

    def __str__(self) -> str:
        return f"unix:{self.path}"


@dataclass(frozen=True)
class TcpAddress:
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def loopback(self) -> bool:
        """Whether it is on this host for certain. Of all names only `localhost` counts: others may lead anywhere."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"


Address = UnixAddress | TcpAddress


def parse_address(text: str) -> Address:
    """Parses `unix:/path`, `host:port`, `10.0.0.5:7400` or `[::1]:7400`. BadInput if it is none of these."""
    if text.startswith("unix:"):
        if not text.removeprefix("unix:").startswith("/"):
            raise BadInput(f"cannot read the address {text}: write unix: followed by an absolute path")
        return UnixAddress(text.removeprefix("unix:"))
    host, colon, port = text.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        colon = ""  # an IPv6 address without brackets: where the port begins is ambiguous
    if not (host and colon and port.isascii() and port.isdecimal() and int(port) < 1 << 16) or " " in host:
        raise BadInput(f"cannot read the address {text}: write it as host:port, such as 10.0.0.5:7400 or [::1]:7400")
    return TcpAddress(host, int(port))


def listen_unix(path: str | os.PathLike[str], shared: bool = False) -> socket.socket:
    """A listening Unix socket, for its owner only or also for the directory's group. Replaces an existing file."""
    path = Path(path)
    if len(os.fsencode(path)) > LONGEST_PATH:
        raise BadInput(
            f"{path} is too long for a Unix socket (at most {LONGEST_PATH} bytes): set FAIRGATE_DIR to a shorter path"
        )
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        path.unlink(missing_ok=True)
        listener.bind(str(path))
        if shared:
            os.chown(path, -1, path.parent.stat().st_gid)
        path.chmod(0o660 if shared else 0o600)
        listener.listen(BACKLOG)
        listener.setblocking(False)
    except OSError as wrong:
        listener.close()
        raise BadInput(f"cannot listen on {path}: {wrong.strerror}") from wrong
    return listener


def listen_tcp(address: TcpAddress) -> socket.socket:
    listener = None
    try:
        family, kind, _, _, where = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(where)
        listener.listen(BACKLOG)
        listener.setblocking(False)
    except OSError as wrong:
        if listener is not None:
            listener.close()
        raise BadInput(f"cannot listen on {address}: {wrong.strerror}") from wrong
    return listener


def check_secure(address: Address, tls: bool, insecure: bool) -> None:
    """BadInput if others can reach the address and neither TLS nor `insecure` is set."""
    if not (tls or insecure) and is_exposed(address):
        raise BadInput(
            f"{address} is not a loopback address: create keys for TLS with `fairgate keys init`, or set insecure"
            " to let in anyone who can reach it"
        )


def is_exposed(address: Address) -> bool:
    """Whether other hosts may be able to reach the address."""
    return isinstance(address, TcpAddress) and not address.loopback


def bound_to(listener: socket.socket) -> Address:
    """The actual address of a listening socket, with the port that the system chose for port 0."""
    name = listener.getsockname()
    return UnixAddress(name) if listener.family == socket.AF_UNIX else TcpAddress(name[0], name[1])
