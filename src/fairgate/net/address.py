"""Addresses of peers, `unix:/path/to/socket` or `host:port`, and TCP sockets that listen on them.

unix_socket.py has the Unix sockets.
"""

import ipaddress
import socket
from collections.abc import Iterable
from dataclasses import dataclass

from fairgate.errors import BadInput

BACKLOG = 128


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
    if not isinstance(text, str):
        raise BadInput(f"cannot read the address {text!r:.80}: write a string, such as '10.0.0.5:7400'")
    if not text.isprintable():
        raise BadInput(f"cannot read the address {text!r:.80}: it has characters that cannot be printed")
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


def check_secure(address: Address, tls: bool, insecure: bool, secret: bool) -> None:
    """BadInput if someone else could use the address: another host unless there is TLS or `insecure` is set, another
    user of this host unless there is TLS or a secret."""
    if tls or isinstance(address, UnixAddress):
        return
    if address.loopback and not secret:
        raise BadInput(
            f"every user of this host can connect to {address}: give the cluster a secret (create one with `fairgate"
            " keys secret`) or keys for TLS, or use a Unix socket"
        )
    if not (address.loopback or insecure):
        raise BadInput(
            f"{address} is not a loopback address: create keys for TLS with `fairgate keys init`, or set insecure"
            " to let in anyone who can reach it"
        )


def check_one_kind(addresses: Iterable[Address]) -> None:
    """BadInput if some of the addresses are Unix sockets and others are not: no peer could reach all others."""
    by_kind = {type(address): address for address in addresses}
    if len(by_kind) > 1:
        one, other = sorted(map(str, by_kind.values()))
        raise BadInput(f"a cluster uses either Unix sockets or TCP: {other} and {one} cannot be combined")


def is_exposed(address: Address) -> bool:
    """Whether other hosts may be able to reach the address."""
    return isinstance(address, TcpAddress) and not address.loopback


def bound_to(listener: socket.socket) -> Address:
    """The actual address of a listening socket, with the port that the system chose for port 0."""
    name = listener.getsockname()
    return UnixAddress(name) if listener.family == socket.AF_UNIX else TcpAddress(name[0], name[1])
