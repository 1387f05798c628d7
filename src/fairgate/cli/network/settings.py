"""The network settings of a command: which peers it talks to, and what it reports (metrics, journal).

Most imports are inside functions, so that `fairgate run` starts fast.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from fairgate import sync
from fairgate.cli.network.options import JOIN_OPTIONS, flag
from fairgate.errors import BadInput

LOOK_SECONDS = 10.0  # somebody waits for the answer

if TYPE_CHECKING:
    from fairgate.live.directory import ClusterDirectory
    from fairgate.live.threads import FirstGate
    from fairgate.net.address import Address
    from fairgate.net.secret import Secret
    from fairgate.net.tls import Tls
    from fairgate.prometheus import Served


class NetworkSettings(msgspec.Struct, frozen=True):
    """The values of the network options. With none of them set, the command talks to the peers of this host."""

    join: tuple[str, ...] = ()
    mdns: bool = False
    create: bool = False
    listen: str | None = None
    advertise: str | None = None
    cluster: str | None = None
    keys: str | None = None
    insecure: bool = False
    secret: str | None = None
    join_timeout: float | None = None
    metrics: int | None = None
    journal: str | None = None
    lease: float | None = None
    drift: float | None = None
    state: str | None = None

    @classmethod
    def of(cls, words: Mapping[str, Any]) -> "NetworkSettings":
        return cls(**{**words, "join": tuple(words["join"] or ())})

    @property
    def between_hosts(self) -> bool:
        return bool(self.join or self.mdns or self.create)

    def check(self) -> None:
        """Raises BadInput if options contradict each other, or an address cannot be parsed."""
        idle = [name for name in JOIN_OPTIONS if getattr(self, name) != getattr(NOTHING_SAID, name)]
        if idle and not self.between_hosts:
            raise BadInput(
                f"{flag(idle[0])} is only for clusters of several hosts: add --join HOST:PORT or --mdns, or start one"
                " with fairgate peer --create"
            )
        if self.create and self.join:
            raise BadInput("--create creates a cluster and --join joins an existing one: use only one of them")
        if not self.create:
            for name in ("lease", "drift"):
                if getattr(self, name) is not None:
                    raise BadInput(f"--{name} is chosen when a cluster is created: it is only for --create")
        if self.insecure and self.keys:
            raise BadInput("--keys is for TLS and --insecure disables TLS: use only one of them")
        if self.join_timeout is not None and not 0 < self.join_timeout < float("inf"):
            raise BadInput(f"--join-timeout must be more than 0 seconds, not {self.join_timeout:g}")
        if self.between_hosts:
            self.check_addresses()

    def check_addresses(self) -> None:
        from fairgate.net.address import UnixAddress, check_one_kind  # noqa: PLC0415

        addresses = self.addresses(self.join)
        check_one_kind(addresses)
        if any(isinstance(address, UnixAddress) for address in addresses):
            if self.keys:
                raise BadInput("--keys is for TLS, which Unix sockets do not use")
            if self.secret:
                raise BadInput("--secret is for TCP: over Unix sockets, the kernel says who is there")
            if self.mdns:
                raise BadInput("--mdns finds peers on the network, which Unix sockets are not on: use --join unix:PATH")

    def addresses(self, seeds: tuple[str, ...]) -> "list[Address]":
        """The addresses of `seeds`, --listen and --advertise."""
        if not self.between_hosts:
            return []
        from fairgate.net.address import parse_address  # noqa: PLC0415

        return [parse_address(text) for text in (*seeds, self.listen, self.advertise) if text is not None]

    # What commands make of the settings.

    def peer(self, standing: bool = False, first: "FirstGate | None" = None) -> sync.Peer:
        """Become a member, even if this host has a standing peer, with a seat at the first gate.

        Raises BadInput if that is not possible, and KMismatch if the gate has another k.
        """
        from fairgate.live.threads import ClusterPeer  # noqa: PLC0415

        if self.metrics is not None:
            import fairgate.live.metrics  # noqa: F401, PLC0415 (fails now, not after the wait for the gate)
        seeds, network = self.network()
        if standing and (state := self.state_folder(seeds)) is not None:
            network["state"] = state
        return sync.Peer(ClusterPeer(seeds, self.journal, {**network, "standing": standing}, first))

    def state_path(self) -> str:
        """Where a standing peer of this cluster on this host has saved its state, if it has."""
        from fairgate.cli.network.state import default_state  # noqa: PLC0415

        return self.state or default_state(self.name)

    def joining(self, seeds: tuple[str, ...]) -> "NetworkSettings":
        return msgspec.structs.replace(self, join=seeds)

    def within(self, seconds: float) -> "NetworkSettings":
        return msgspec.structs.replace(self, join_timeout=self.join_timeout or seconds)

    def state_folder(self, seeds: tuple[str, ...] = ()) -> str | None:
        """Where a standing peer of this cluster saves its state; None if it does not."""
        from fairgate.cli.network.state import default_state  # noqa: PLC0415

        return self.state or (default_state(self.name) if self.leaves_host(seeds) else None)

    def leaves_host(self, seeds: tuple[str, ...]) -> bool:
        """Does any of the addresses belong to a network, not only to this host?"""
        from fairgate.net.address import TcpAddress  # noqa: PLC0415

        return any(isinstance(at, TcpAddress) and not at.loopback for at in self.addresses(seeds))

    def directory(self) -> "ClusterDirectory":
        """Where to look up the gates of a cluster."""
        from fairgate.live.cluster_options import ClusterOptions  # noqa: PLC0415
        from fairgate.live.directory import ClusterDirectory  # noqa: PLC0415

        seeds, network = self.within(LOOK_SECONDS).network()
        return ClusterDirectory(ClusterOptions(seeds, **network))

    def network(self) -> tuple[tuple[str, ...], dict[str, Any]]:
        """Seeds and keyword arguments for `ClusterOptions` (live/cluster_options.py); both empty for this host."""
        self.check()
        if not self.between_hosts:
            return (), {}
        names = ("listen", "advertise", "cluster", "join_timeout", "lease", "drift")
        network = {name: getattr(self, name) for name in names}
        network = {name: value for name, value in network.items() if value is not None}
        seeds = self.join or (() if self.create else self.found())
        tls = self.tls(seeds)
        self.check_secure(seeds, tls)
        return seeds, network | {"insecure": self.insecure, "tls": tls, "secret": self.shared_secret()}

    def shared_secret(self) -> "Secret | None":
        from fairgate.net import secret  # noqa: PLC0415

        return secret.from_environment() if self.secret is None else secret.load(self.secret)

    def check_secure(self, seeds: tuple[str, ...], tls: "Tls | None") -> None:
        """The check of net/address.py for the addresses that this peer uses, in terms of options."""
        from fairgate.net.address import TcpAddress, is_exposed, parse_address  # noqa: PLC0415

        for text in (*seeds, self.listen):
            if text is None or tls:
                continue
            address = parse_address(text)
            if isinstance(address, TcpAddress) and address.loopback and self.shared_secret() is None:
                raise BadInput(
                    f"every user of this host can connect to {text}: use --secret FILE (`fairgate keys secret FILE`"
                    " creates one), --keys DIR, or unix:PATH"
                )
            if not self.insecure and is_exposed(address):
                raise BadInput(
                    f"{text} is not a loopback address: create keys for TLS with `fairgate keys init` (see --keys), or"
                    " use --insecure to let in anyone who can reach it"
                )

    def found(self) -> tuple[str, ...]:
        """Addresses found by mDNS."""
        from fairgate.live import mdns  # noqa: PLC0415

        seconds = self.join_timeout or mdns.FIND_SECONDS
        return tuple(mdns.find(self.name, seconds, mdns.interfaces_of(self.listen)))

    @property
    def name(self) -> str:
        return self.cluster or "fairgate"

    def tls(self, seeds: tuple[str, ...]) -> "Tls | None":
        folder = self.keys_path(seeds)
        if folder is None:
            return None
        from fairgate.net import keys  # noqa: PLC0415 (cryptography is slow to import)

        return keys.load(folder.parent, folder.stem) if folder.suffix == ".crt" else keys.load(folder)

    def keys_path(self, seeds: tuple[str, ...]) -> Path | None:
        from fairgate.net.keys_folder import keys_folder  # noqa: PLC0415

        if self.insecure or self.keys:
            return Path(self.keys) if self.keys else None
        usual = keys_folder()
        return usual if self.leaves_host(seeds) and usual.is_dir() else None

    def served(self, peer: sync.Peer, tell: Callable[[str], None]) -> AbstractContextManager[Any]:
        """A context that serves metrics if --metrics was given. With port 0, `tell` gets a line with the URL."""
        if self.metrics is None:
            return nullcontext()
        from fairgate.live.metrics import serve  # noqa: PLC0415

        return self.told(serve(peer.engine, self.metrics), tell)

    def served_on_host(
        self, places: Sequence[tuple[str, str]], tell: Callable[[str], None]
    ) -> AbstractContextManager[Any]:
        """The same for all gates of this host, and for those of `places` that are elsewhere."""
        if self.metrics is None:
            return nullcontext()
        from fairgate.prometheus import LOOPBACK, Served  # noqa: PLC0415
        from fairgate.room.metrics import HostCollector  # noqa: PLC0415

        elsewhere = [(folder, gate) for folder, gate in places if os.sep in gate]
        return self.told(Served(HostCollector(others=elsewhere), self.metrics, LOOPBACK), tell)

    def told(self, served: "Served", tell: Callable[[str], None]) -> "Served":
        if self.metrics == 0:
            tell(f"metrics are at {served.url}")
        return served

    def advertised(self, peer: sync.Peer) -> AbstractContextManager[Any]:
        """A context in which other peers can find this one by mDNS, if --mdns was given."""
        if not self.mdns:
            return nullcontext()
        from fairgate.live.mdns import advertise, interfaces_of  # noqa: PLC0415

        return advertise(self.name, peer.engine.identity.address, interfaces_of(self.listen))


NOTHING_SAID = NetworkSettings()
