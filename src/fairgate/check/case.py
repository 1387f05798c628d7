"""What is explored: one small system, and what may befall it. Every bound is part of the case."""

from dataclasses import asdict, dataclass, field
from typing import Any

from fairgate.core.mutex import Mutex
from fairgate.errors import BadInput
from fairgate.registry import check_size, find_protocol

NETWORKS = ("any", "fifo", "lossy", "dup")
MOST_NODES = 30  # who waits is kept in the bits of an integer; long before that there are too many states


@dataclass(frozen=True)
class Case:
    protocol: str
    nodes: int = 3
    k: int = 1
    requests: int = 1  # of each node
    network: str = "any"  # any: messages overtake each other; fifo: not between the same two; lossy, dup: any, and
    losses: int = 1  # with lossy: so many messages are lost
    dups: int = 1  # with dup: so many arrive twice
    cancels: int = 0  # so many requests are cancelled, at any moment
    crashes: int = 0  # so many nodes stop for ever
    resets: int = 0  # so many times a node loses its memory
    census: bool = False  # every node above recovery/regenerate.py, with a view after every crash
    joins: int = 0  # so many nodes are no members before they ask
    ticks: int = 0  # timed protocols: how far every clock goes, in steps of `tick` ns
    tick: int = 1_000_000_000
    skew: int = 0  # how many ticks a clock may be ahead of the slowest one; 0: all go at once
    options: dict[str, Any] = field(default_factory=dict)

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def check(self) -> type[Mutex]:
        """The protocol; one clear line for whatever makes no sense."""
        protocol = find_protocol(self.protocol)
        check_size(protocol, self.nodes, self.k)
        if self.nodes > MOST_NODES:
            raise BadInput(f"--nodes must be at most {MOST_NODES} to be explored, not {self.nodes}")
        if self.network not in NETWORKS:
            raise BadInput(f"--network must be one of {', '.join(NETWORKS)}, not {self.network!r}")
        if self.crashes >= self.nodes:
            raise BadInput(f"--crashes must be below --nodes ({self.nodes}): somebody must be left to ask")
        if self.joins and not self.census:
            raise BadInput("--joins needs --census: without it the members are the same for ever")
        for name in ("requests", "losses", "dups", "cancels", "crashes", "resets", "joins", "ticks", "skew"):
            if getattr(self, name) < 0:
                raise BadInput(f"--{name} must be 0 or more, not {getattr(self, name)}")
        if protocol.timed and self.ticks < 1:
            raise BadInput(f"{self.protocol} goes by the clock: say how far, such as --ticks 5")
        return protocol
