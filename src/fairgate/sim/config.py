"""What to simulate, as a person asks for it, and one clear line for whatever makes no sense."""

from dataclasses import asdict, dataclass, field
from typing import Any

from fairgate.core.mutex import Mutex
from fairgate.errors import BadInput
from fairgate.registry import check_size, check_votes


@dataclass(frozen=True)
class Config:
    """What to simulate. Times are in seconds, as people say them."""

    protocol: str = "fair_k"
    nodes: int = 100
    k: int = 3
    rate: float = 0.5
    cs: float = 10.0
    latency: str = "1"
    requests: int = 200  # of each node (of the system, in rounds)
    seed: int = 1
    warmup: int = 0  # requests of each node left out of the waits
    faults: str = ""
    workload: str = "closed"  # closed, open or rounds
    askers: int = 20  # requests of one round
    exponential_cs: bool = False
    give_up: float = 0.0  # share of requests that are cancelled if they wait too long
    give_up_after: float = 1.0  # mean patience of those
    stack: tuple[str, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)
    check: bool = True
    usage: bool = False  # keep every change of the number inside
    marks: bool = False  # count the branches that the protocol notes
    census_every: int | None = None  # events between two counts of all tokens; None: seldom enough not to matter
    seconds: float = 0.0  # how long the run lasts; 0: until all requests are done
    warmup_seconds: float = 0.0  # left out of all measures but the loads
    # Of protocols on a DHT:
    resources: int = 1  # gates; every node may ask for each
    rounds: int = 0  # of EE's workload; 0: another one
    round_seconds: float = 0.0  # 0: long enough
    per_resource: bool = False  # `requests` are for each resource in each round
    leave: float = 0.5  # chance that a node inside leaves in a round
    churn: int = 0  # nodes that come or go in each round
    requesters: int = 0  # nodes that ask in rounds; 0: all
    replica_life: float = 0.0  # mean seconds until a replica loses its memory; 0: it never does

    @property
    def total(self) -> int:
        """How many entries there will be, if all goes well."""
        if self.rounds:
            return self.rounds * self.resources
        if self.seconds:
            return int(self.rate * self.seconds)
        return self.requests * (self.askers if self.workload == "rounds" else self.nodes)

    def describe(self) -> dict[str, Any]:
        return asdict(self)


def check(config: Config, protocol: type[Mutex]) -> None:
    """One clear line for whatever makes no sense."""
    check_size(protocol, config.nodes, config.k)
    check_votes(protocol, config.nodes, config.k, config.options)
    if not config.rate > 0:
        raise BadInput(f"--rate must be above 0 requests a second, not {config.rate:g}")
    if not config.cs >= 0:
        raise BadInput(f"--cs must be 0 or more seconds, not {config.cs:g}")
    if config.requests < 1:
        raise BadInput(f"--requests must be at least 1, not {config.requests}")
    if not 0 <= config.warmup < config.requests:
        raise BadInput(f"--warmup must be 0..{config.requests - 1} (below --requests), not {config.warmup}")
    if not 0.0 <= config.give_up <= 1.0 or not config.give_up_after > 0:
        raise BadInput("--give-up is SHARE:SECONDS with a share between 0 and 1 and more than 0 seconds")
    check_times(config)
    if config.workload == "rounds" and not config.rounds and not 1 <= config.askers <= config.nodes:
        raise BadInput(f"--askers must be 1..{config.nodes} (the number of nodes), not {config.askers}")


def check_times(config: Config) -> None:
    """Of runs that last for a set time, and of rounds that begin at set times."""
    if config.seconds < 0 or not 0 <= config.warmup_seconds <= config.seconds:
        raise BadInput("--warmup-seconds must be 0 or more, and less than --seconds")
    if config.seconds and config.seconds == config.warmup_seconds:
        raise BadInput(f"--warmup-seconds {config.warmup_seconds:g} leaves nothing of --seconds {config.seconds:g}")
    if config.resources < 1:
        raise BadInput(f"--resources must be at least 1, not {config.resources}")
    if config.rounds < 0 or (config.rounds and config.workload != "rounds"):
        raise BadInput("--rounds N is for --workload rounds, and at least 1")
    if config.churn < 0 or config.churn % 2 or (config.churn and not config.rounds):
        raise BadInput("--churn is an even number of nodes that come or go in each of --rounds")
    if not 0 <= config.requesters <= config.nodes:
        raise BadInput(f"--requesters must be 0..{config.nodes} (the number of nodes), not {config.requesters}")
    most = config.requesters or config.nodes
    if config.rounds and config.per_resource and config.requests > most:
        raise BadInput(f"--requests {config.requests} for each resource, but only {most} nodes ask")
