"""Small random simulations of one protocol: run i of seed s is always the same one.

They are small because a few nodes under unusual conditions reach more branches of a protocol than many nodes under
normal ones, and because people have to read the failures. Numbers are drawn from short lists of very different values.
So events that are rare in most settings (a message that overtakes ten others, a request that is cancelled just when
its turn comes) are common in some.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

from fairgate.core.clock import MILLION
from fairgate.core.mutex import Mutex
from fairgate.core.units import SECOND
from fairgate.sim.config import Config
from fairgate.sim.faults import parse_faults
from fairgate.sim.sampling import sample
from fairgate.sim.stream import Stream
from fairgate.swarm.promise import allowed_drift, bounds, claims, initialised_by, is_time, shortest_time

NODES = (2, 8)
REQUESTS = (1, 6)
RATES = (0.1, 0.5, 2.0, 10.0, 100.0)
STAYS = (0.0, 0.1, 1.0, 5.0)
LATENCIES = ("0", "0.1", "1", "3", "uniform:0,0.1", "uniform:0,1", "uniform:0,5", "uniform:0.5,2", "uniform:0.9,1")
PATIENCES = (0.1, 1.0, 5.0, 20.0)
SHARES = (0.05, 0.2, 0.4)

T = TypeVar("T")


class RandomConfig:
    """One configuration, drawn part by part from one stream."""

    latencies: tuple[str, ...] = LATENCIES

    def __init__(self, protocol: type[Mutex], stream: Stream) -> None:
        self.protocol = protocol
        self.stream = stream
        self.claims = claims(protocol)

    def chance(self, share: float) -> bool:
        return self.stream.unit() < share

    def one_of(self, choices: Sequence[T]) -> T:
        return choices[self.stream.below(len(choices))]

    def between(self, low: int, high: int) -> int:
        return low + self.stream.below(high - low + 1)

    def within(self, seconds: float) -> float:
        return round(seconds * self.stream.unit(), 3)

    def config(self) -> Config:
        nodes = self.between(*NODES)
        stack = self.stack()
        latency = self.one_of(self.latencies)
        requests, rate, cs = self.between(*REQUESTS), self.one_of(RATES), self.one_of(STAYS)
        span = requests * (cs + 1.0 / rate)  # about as long as the run lasts
        network = self.network(nodes, span, "channel" in stack) if self.chance(0.6) else []
        lossy = any(fault.startswith("loss") for fault in network)
        config = Config(
            protocol=self.protocol.about.name,
            nodes=nodes,
            k=self.k(nodes),
            rate=rate,
            cs=cs,
            latency=latency,
            requests=requests,
            seed=1 + self.stream.below(1_000_000),
            faults=",".join([*network, *self.failures(nodes, latency, span, network)]),
            workload=self.one_of(("closed", "open", "rounds")),
            askers=self.between(1, nodes),
            exponential_cs=self.chance(0.4),
            give_up=self.one_of((0.0, 0.0, 0.3, 1.0)),
            give_up_after=self.one_of(PATIENCES),
            stack=stack,
            options=self.options(shortest_time(latency, lossy)),
            marks=True,
            census_every=1,
        )
        return self.with_drift(config) if allowed_drift(config) and self.chance(0.5) else config

    def with_drift(self, config: Config) -> Config:
        """Let clocks drift apart as far as the protocol allows for."""
        drift = f"drift:{allowed_drift(config) / MILLION:g}"
        return replace(config, faults=",".join(filter(None, [config.faults, drift])))

    def stack(self) -> tuple[str, ...]:
        return ("channel",) if self.chance(0.3) else ()

    def k(self, nodes: int) -> int:
        return self.between(1, nodes) if self.protocol.about.many else 1

    def options(self, shortest: int) -> dict[str, Any]:
        """Values for some options. A time whose default would be too short is always among them."""
        known = self.protocol.about.options
        drawn = [name for name, value in known.items() if self.chance(0.6) or (is_time(value) and value <= shortest)]
        return {name: self.option(known[name], shortest) for name in drawn}

    def option(self, default: Any, shortest: int) -> Any:
        if isinstance(default, tuple):
            return self.one_of(default)
        if isinstance(default, bool):
            return self.chance(0.5)
        if is_time(default):  # the shortest allowed, or a small multiple of it
            return self.one_of((1, 2, 5)) * (shortest // 10**6 + 1) * 10**6
        if isinstance(default, int):
            return self.one_of((default // 10, default, 10 * default))
        return default

    # Faults.

    def network(self, nodes: int, span: float, channel: bool) -> list[str]:
        """Faults of the network. Reordering is always allowed: no protocol relies on the order of messages."""
        faults = [f"reorder:{self.one_of(SHARES)}"] if self.chance(0.5) else []
        if (channel or "loss" in self.claims) and self.chance(0.5):
            faults.append(f"loss:{self.one_of(SHARES)}")
        if (channel or "duplication" in self.claims) and self.chance(0.5):
            faults.append(f"dup:{self.one_of(SHARES)}")
        if (channel or "loss" in self.claims) and self.chance(0.3):
            first = self.between(1, nodes - 1)
            faults.append(f"{partition(first, nodes)}@{self.within(span)}+{self.one_of((1, 5, 30))}")
        return faults

    def failures(self, nodes: int, latency: str, span: float, network: list[str]) -> list[str]:
        faults: list[str] = []
        if self.protocol.about.detectors:
            faults += [f"detect:{self.one_of((0, 2, '0-2', '1-10'))}", f"trust:{self.one_of((0, 0.1, 1, 5))}"]
            faults += [f"doubt:{self.one_of((0, 0.2, 0.8))}", f"distrust:{self.one_of((0, 0.5, 1))}"]
        if self.may_crash(network) and self.chance(0.7):
            faults += self.crashes(nodes, latency, span, [*network, *faults])
        if "reset" in self.claims and self.chance(0.5):
            faults.append(f"reset:{self.between(0, nodes - 1)}@{self.within(span)}+{self.one_of((0, 1, 5))}")
        return faults

    def may_crash(self, network: list[str]) -> bool:
        cut = any(fault.startswith(("loss", "partition")) for fault in network)
        return bool({"crash", "crash of a client"} & self.claims) and not (self.protocol.about.detectors and cut)

    def crashes(self, nodes: int, latency: str, span: float, others: list[str]) -> list[str]:
        start = 0.0
        if self.protocol.about.detectors:
            start = initialised_by(Config(latency=latency), parse_faults(",".join(others), nodes)) / SECOND
        mortal = range(nodes) if "crash" in self.claims else range(1, nodes)
        victims = sample(self.stream, mortal, self.between(1, nodes - 1))
        span = min(span, 20 * (1 + bounds(latency)[1]))  # crashes far apart from each other do not interact
        return [f"crash:{victim}@{round(start + 0.001 + self.within(span), 3)}" for victim in victims]


def partition(first: int, nodes: int) -> str:
    """A partition between the nodes below `first` and the others."""
    return f"partition:{side(0, first - 1)}/{side(first, nodes - 1)}"


def side(low: int, high: int) -> str:
    return f"{low}" if low == high else f"{low}-{high}"
