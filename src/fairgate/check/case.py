"""A case: the small system to explore, with bounds on everything that may happen to it.

The bounds keep the number of states finite. A search that completes proves something about this case, not about
larger ones.
"""

from dataclasses import asdict, dataclass, field
from typing import Any

from fairgate.core.mutex import Mutex
from fairgate.errors import BadInput
from fairgate.registry import check_size, find_protocol

NETWORKS = ("any", "fifo", "lossy", "dup")
MOST_AHEAD = 10_000_000  # parts per million
MOST_NODES = 30  # the waiting nodes are bits of an integer; in practice the number of states sets a lower limit


@dataclass(frozen=True)
class Case:
    """Budgets (losses, dups, cancels, crashes, resets) are upper limits: a run may use less of them."""

    protocol: str
    nodes: int = 3
    k: int = 1
    requests: int = 1  # per node
    network: str = "any"  # any: messages may overtake each other; fifo: not between the same two nodes; lossy, dup: any
    losses: int = 1  # messages that a lossy network loses
    dups: int = 1  # messages that a dup network delivers twice
    again: bool = False  # a node that leaves may ask again in the same step
    cancels: int = 0  # requests that are cancelled, at any moment
    crashes: int = 0  # nodes that stop forever
    resets: int = 0  # times that a node loses its memory and restarts at once
    census: bool = False  # run every node above recovery/regenerate.py, with a new view after every crash
    backups: int | None = None  # run every node above recovery/homes.py, with copies at this many others
    exclusions: int = 0  # members that are excluded while they live
    joins: int = 0  # nodes that only become members when they first request
    ticks: int = 0  # timed protocols: how many ticks every clock advances
    tick: int = 1_000_000_000  # ns
    skew: int = 0  # how many ticks a clock may be ahead of the slowest one; 0: all clocks advance together
    rates: tuple[int, ...] = ()  # by how many parts per million each clock is fast; (): all run at the same rate
    options: dict[str, Any] = field(default_factory=dict)

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def check(self) -> type[Mutex]:
        """Return the protocol class; raise BadInput if the case is not valid."""
        protocol = find_protocol(self.protocol)
        check_size(protocol, self.nodes, self.k)
        if self.nodes > MOST_NODES:
            raise BadInput(f"nodes must be at most {MOST_NODES} to be explored, not {self.nodes}")
        if self.network not in NETWORKS:
            raise BadInput(f"network must be one of {', '.join(NETWORKS)}, not {self.network!r}")
        if self.crashes >= self.nodes:
            raise BadInput(f"crashes must be below nodes ({self.nodes}): at least one node must survive")
        if self.joins and not self.census:
            raise BadInput("joins needs census: without it the membership never changes")
        if self.rates and len(self.rates) != self.nodes:
            raise BadInput(f"rates must have one value per node ({self.nodes}), not {len(self.rates)}")
        if any(not 0 <= rate <= MOST_AHEAD for rate in self.rates):
            given = ", ".join([f"{rate / 10_000:g}" for rate in self.rates])
            raise BadInput(f"rates must be 0 to {MOST_AHEAD // 10_000} percent each, not {given}")
        if self.exclusions and not self.census:
            raise BadInput("exclusions needs census: without it the membership never changes")
        for name in (
            "requests",
            "losses",
            "dups",
            "cancels",
            "crashes",
            "resets",
            "joins",
            "exclusions",
            "ticks",
            "skew",
        ):
            if getattr(self, name) < 0:
                raise BadInput(f"--{name} must be 0 or more, not {getattr(self, name)}")
        if protocol.timed and self.ticks < 1:
            raise BadInput(f"{self.protocol} depends on time: set how far the clocks advance, for example --ticks 5")
        if self.options.get("drift", 1) == 0:
            raise BadInput(
                "drift must be more than 0 to be explored: messages may take no time here, so the holder of a lease and"
                " the node that lent it would end it at the same instant, in any order"
            )
        return protocol
