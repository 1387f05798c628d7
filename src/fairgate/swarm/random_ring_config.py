"""Small random simulations of protocols on a DHT: with an overlay, replicas, and as many failures as quorums allow."""

from typing import Any

from fairgate.core.kbr import Routed
from fairgate.core.mutex import Mutex
from fairgate.core.units import SECOND
from fairgate.errors import BadInput
from fairgate.protocols.sigma.protocol import RETRY
from fairgate.protocols.sigma.strawman import Strawman
from fairgate.registry import find_protocol
from fairgate.sim.config import Config
from fairgate.sim.faults import parse_faults
from fairgate.sim.stream import Stream
from fairgate.swarm.promise import keeps_quorums, promised, shortest_time, with_leases
from fairgate.swarm.random_config import RandomConfig

OVERLAYS = ("full", "settled_chord", "settled_pastry")
LATENCIES = ("0", "0.1", "0.3", "uniform:0,0.1", "uniform:0,0.5", "uniform:0.05,0.2")  # short: an entry takes many hops
LONGER = 30  # times a hop's round trip: routes have several hops, and a reordered message takes ten times as long
BY_HAND = ("replicas", "quorum", "lives")  # options that are not drawn at random


class RandomRingConfig(RandomConfig):
    latencies = LATENCIES

    def __init__(self, protocol: type[Mutex], stream: Stream) -> None:
        super().__init__(protocol, stream)
        self.claims = with_leases(self.claims)

    def config(self) -> Config:
        """Draw the nodes that fail last: whether their failure is survived depends on everything else."""
        drawn = super().config()
        if self.chance(0.5):
            return drawn
        return self.with_failures(drawn)

    def stack(self) -> tuple[str, ...]:
        return (self.one_of(OVERLAYS), *super().stack())

    def k(self, nodes: int) -> int:
        """Draw k, and with it a number of replicas that lets k nodes in."""
        self.nodes = nodes
        most = 2 if self.protocol.about.many and nodes >= 5 else 1
        k = self.between(1, most)
        self.replicas = 2 * k + 1 if k > 1 else self.between(1, nodes)
        return k

    def options(self, shortest: int) -> dict[str, Any]:
        """Draw times so that lost messages are repeated long before a run counts as hanging."""
        shortest = LONGER * shortest_time(self.latency, False)
        options = {name: value for name, value in super().options(shortest).items() if name not in BY_HAND}
        if self.protocol.about.paper.startswith("SG") and "retry" in options:
            # A client that asks again only after its turn has come loses it where replicas lose their memory.
            options["retry"] = min(options["retry"], RETRY)
        if "lease" in self.protocol.about.options:
            options["lease"] = self.option(SECOND, shortest)
        return {"replicas": self.replicas, **options}

    def failures(self, nodes: int, latency: str, span: float, network: list[str]) -> list[str]:
        self.latency = latency
        self.span = span
        return []

    def with_failures(self, config: Config) -> Config:
        """Let one node after another fail, if the quorums allow it."""
        for node in range(config.nodes):
            if self.chance(0.3):
                faults = ",".join(filter(None, [config.faults, self.failure(node)]))
                more = Config(**{**vars(config), "faults": faults})
                if keeps_quorums(more, parse_faults(faults, config.nodes)) and promised(more):
                    config = more
        return config

    def failure(self, node: int) -> str:
        if self.chance(0.5):
            return f"crash:{node}@{self.within(self.span)}"
        return f"reset:{node}@{self.within(self.span)}+{self.one_of((0, 1, 5))}"


def random_config(protocol: str, seed: int, run: int) -> Config:
    """The configuration of run `run` of seed `seed`. Raises BadInput for the strawman."""
    kind = find_protocol(protocol)
    if kind is Strawman:
        raise BadInput("the strawman livelocks under contention, so every swarm of it would fail: use sigma instead")
    draw = RandomRingConfig if issubclass(kind, Routed) else RandomConfig
    config = draw(kind, Stream(f"{seed}:swarm:{run}")).config()
    assert promised(config), f"run {run} of seed {seed} is harder than {protocol} promises to survive: {config}"
    return config
