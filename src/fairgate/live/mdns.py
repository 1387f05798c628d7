"""Finds a cluster on the local network by its name, without an address. Needs the package
zeroconf (the extra `mdns`).

    with sync.join(listen="10.0.0.5:7400", cluster="lab") as peer, advertise("lab", peer.engine.identity.address):
        ...                                                   # on one host
    with sync.join(*find("lab"), cluster="lab") as peer:      # on the others
        ...

Anyone on the network can see the query and answer it. The answer only says where to dial; TLS (net/tls.py) decides who
may join, as always.
"""

import ipaddress
import queue
import secrets
import time
from collections.abc import Sequence

from fairgate.core.closing import Closing
from fairgate.errors import BadInput
from fairgate.net.address import TcpAddress, parse_address

try:
    from zeroconf import Error, InterfaceChoice, ServiceBrowser, ServiceInfo, ServiceListener, Zeroconf
except ModuleNotFoundError as missing:
    raise BadInput("mDNS needs the package zeroconf: pip install zeroconf") from missing

KIND = "_fairgate._tcp.local."
CLUSTER, ADDRESS = b"cluster", b"address"
FIND_SECONDS = 5.0
ALL: Sequence[str] = ()  # interfaces, by their addresses


class Advertised(Closing):
    """Makes this peer discoverable until `close()`."""

    def __init__(self, cluster: str, address: str, interfaces: Sequence[str]) -> None:
        what = described(cluster, address)
        self.network = network(interfaces)
        try:
            self.network.register_service(what)
        except (Error, OSError) as wrong:
            self.network.close()
            raise BadInput(f"cannot advertise {address} by mDNS: {wrong}") from wrong

    def close(self) -> None:
        """Stops answering queries."""
        self.network.unregister_all_services()
        self.network.close()


def advertise(cluster: str, address: str, interfaces: Sequence[str] = ALL) -> Advertised:
    """Makes the peer at `address` (`peer.engine.identity.address`) discoverable. Takes a second or two.

    Returns an object to close or to use with `with`. BadInput if mDNS cannot be used.
    """
    return Advertised(cluster, address, interfaces)


def find(cluster: str, seconds: float = FIND_SECONDS, interfaces: Sequence[str] = ALL) -> list[str]:
    """The address of the first peer of this cluster to answer, as a list of seeds for `join`.

    BadInput if none answers within `seconds`.
    """
    found = ServiceFinder()
    asking = network(interfaces)
    try:
        ServiceBrowser(asking, KIND, found)
        address = found.first(cluster.encode(), seconds)
    finally:
        asking.close()
    if address is None:
        raise BadInput(f"no peer of cluster {cluster} answered by mDNS within {seconds:g} s")
    return [address]


class ServiceFinder(ServiceListener):
    def __init__(self) -> None:
        self.answers: queue.SimpleQueue[dict[bytes, bytes | None]] = queue.SimpleQueue()

    def add_service(self, zc: Zeroconf, type_: str, name: str) -> None:
        info = zc.get_service_info(type_, name)
        if info is not None:
            self.answers.put(info.properties)

    def update_service(self, zc: Zeroconf, type_: str, name: str) -> None:
        self.add_service(zc, type_, name)

    def remove_service(self, zc: Zeroconf, type_: str, name: str) -> None:
        pass

    def first(self, cluster: bytes, seconds: float) -> str | None:
        until = time.monotonic() + seconds
        while True:
            try:
                answer = self.answers.get(timeout=max(until - time.monotonic(), 0))
            except queue.Empty:
                return None
            address = answer.get(ADDRESS)
            if answer.get(CLUSTER) == cluster and address:
                return address.decode(errors="replace")


def network(interfaces: Sequence[str]) -> Zeroconf:
    try:
        return Zeroconf(interfaces=list(interfaces) or InterfaceChoice.Default)
    except OSError as wrong:
        raise BadInput(f"cannot use mDNS: {wrong.strerror or wrong}") from wrong


def interfaces_of(listen: str | None) -> list[str]:
    """The interfaces to use mDNS on: that of the listening address, or all (an empty list)."""
    at = parse_address(listen) if listen else None
    try:
        known = isinstance(at, TcpAddress) and not ipaddress.ip_address(at.host).is_unspecified
    except ValueError:  # a host's name
        known = False
    return [at.host] if known and isinstance(at, TcpAddress) else []


def described(cluster: str, address: str) -> ServiceInfo:
    """The service to announce. The address is in its properties, because it may be one outside a NAT."""
    at = parse_address(address)
    if not isinstance(at, TcpAddress):
        raise BadInput(f"cannot advertise {address} by mDNS: it must be of the form host:port")
    name = f"fairgate-{secrets.token_hex(6)}"
    try:
        packed = [ipaddress.ip_address(at.host).packed]
    except ValueError:  # a host's name
        packed = []
    properties = {CLUSTER: cluster.encode(), ADDRESS: str(at).encode()}
    return ServiceInfo(
        KIND, f"{name}.{KIND}", port=at.port, addresses=packed, properties=properties, server=f"{name}.local."
    )
