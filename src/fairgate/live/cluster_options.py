"""How to join or create a cluster, and where to listen by default."""

import asyncio
import socket
from dataclasses import dataclass, field

from fairgate.arguments import SECOND, is_number
from fairgate.errors import BadInput
from fairgate.net.address import Address, TcpAddress, UnixAddress
from fairgate.net.secret import Secret, from_environment
from fairgate.net.tls import Tls
from fairgate.net.unix_socket import path_beside

JOIN_SECONDS = 30.0
LEASE_SECONDS = 10.0
DRIFT = 0.01
SHORTEST_LEASE, LONGEST_LEASE = 0.5, 3600.0  # seconds
MOST_DRIFT = 0.5


@dataclass(frozen=True)
class ClusterOptions:
    """How to join or create a cluster.

    Attributes:
        seeds: Addresses of peers of the cluster, all "host:port" or all "unix:/path". Without seeds this peer creates
            the cluster.
        listen: The address to listen on. Required without seeds; otherwise the default is a free port on the
            interface through which the first seed is reached, or a new Unix socket beside the first seed.
        advertise: The address at which other peers can reach this one, if it is not `listen` (NAT, containers).
        cluster: The name of the cluster. Peers of clusters with other names are refused.
        tls: The certificates to use, from `fairgate.net.keys.load`. Required unless `insecure` is set or
            all addresses are loopback addresses or Unix sockets.
        insecure: Allow connections between hosts without TLS: anyone who can reach the port can enter.
        secret: The secret that the peers share, from `fairgate.net.secret.load`. Required for loopback addresses
            without TLS, since every user of the host can connect to them. By default it is read from the file that
            the environment variable FAIRGATE_SECRET names.
        join_timeout: How many seconds to try to join.
        standing: Whether this peer may vote on the roster. The default is True for a peer that creates a cluster and
            False for one that joins.
        lease: For a peer that creates a cluster: how many seconds a peer that cannot reach a majority of the voters
            keeps its permits, and how long it takes until the slots of a killed peer are free. Default: 10.
        drift: For a peer that creates a cluster: by which fraction the clocks of two hosts may run at different
            speeds. Default: 0.01.
        state: A directory for what this peer must know when it is started again: the id of the cluster, the addresses
            of its peers and the highest epoch. Without it nothing is saved.
    """

    seeds: tuple[str, ...] = ()
    listen: str | None = None
    advertise: str | None = None
    cluster: str = "fairgate"
    tls: Tls | None = None
    insecure: bool = False
    secret: Secret | None = field(default_factory=from_environment)
    join_timeout: float = JOIN_SECONDS
    standing: bool | None = None
    lease: float | None = None
    drift: float | None = None
    state: str | None = None

    def times(self) -> tuple[int, int]:
        """The lease in ns, and the drift in ppm. BadInput if they are not usable, or not for this peer to choose."""
        if self.seeds and (self.lease is not None or self.drift is not None):
            raise BadInput("the lease and the drift of a cluster are chosen when it is created: do not give them here")
        lease = LEASE_SECONDS if self.lease is None else self.lease
        drift = DRIFT if self.drift is None else self.drift
        if not is_number(lease) or not SHORTEST_LEASE <= lease <= LONGEST_LEASE:
            raise BadInput(
                f"the lease of a cluster must be {SHORTEST_LEASE:g} to {LONGEST_LEASE:g} seconds, not {lease!r:.60}"
            )
        if not is_number(drift) or not 0 <= drift <= MOST_DRIFT:
            raise BadInput(f"the drift of clocks must be a fraction from 0 to {MOST_DRIFT:g}, not {drift!r:.60}")
        return int(lease * SECOND), int(drift * 1_000_000)


async def place_near(seed: Address) -> Address:
    """Where to listen by default: on the address of this host from which the seed would be reached (this sends no
    packet), or on a Unix socket beside the seed."""
    if isinstance(seed, UnixAddress):
        return UnixAddress(path_beside(seed.path))
    try:
        found = await asyncio.get_running_loop().getaddrinfo(seed.host, seed.port, type=socket.SOCK_DGRAM)
        family, kind, _, _, where = found[0]
        with socket.socket(family, kind) as probe:
            probe.connect(where)
            return TcpAddress(str(probe.getsockname()[0]), 0)
    except OSError as wrong:
        raise BadInput(f"cannot reach {seed}: {wrong.strerror}") from wrong
