"""The configuration of a simulation, and its validation: one clear line for each kind of mistake."""

from dataclasses import asdict, dataclass, field
from typing import Any

from fairgate.arguments import check_seed
from fairgate.core.kbr import Routed
from fairgate.core.mutex import Mutex
from fairgate.core.units import seconds_to_ns
from fairgate.errors import BadInput
from fairgate.recovery.homes import BACKUPS
from fairgate.registry import check_size, check_votes

SLOWEST = 1e-9  # requests per second: one in 32 years
MOST = (1 << 31) - 1  # seats, and requests of each: compiled, both are numbered in 32 bits


@dataclass(frozen=True)
class Config:
    """What to simulate. Times are in seconds."""

    protocol: str = "fair_k"
    nodes: int = 100
    k: int = 3
    rate: float = 0.5
    cs: float = 10.0
    latency: str = "1"
    requests: int = 200  # per node; with workload "rounds": number of rounds, or requests per round if `rounds` is set
    seed: int = 1
    warmup: int = 0  # requests per node that are left out of the waits
    faults: str = ""
    workload: str = "closed"  # closed, open or rounds
    askers: int = 20  # requests per round
    exponential_cs: bool = False
    give_up: float = 0.0  # share of requests that are cancelled if they wait too long
    give_up_after: float = 1.0  # how long those wait, on average
    stack: tuple[str, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)
    check: bool = True
    usage: bool = False  # record every change of the number inside
    waits: bool = False  # record every wait, with its node
    marks: bool = False  # count the marks that the protocol notes
    census_every: int | None = None  # events between two censuses of tokens; None: so rare that they cost little
    seconds: float = 0.0  # how long the run lasts; 0: until all requests are done
    warmup_seconds: float = 0.0  # left out of all measures except the loads
    # For protocols on a DHT:
    resources: int = 1  # number of gates; every node may request each
    rounds: int = 0  # of EE's workload (sim/rounds.py); 0: not that workload
    round_seconds: float = 0.0  # length of a round; 0: long enough for its messages
    per_resource: bool = False  # make `requests` requests per round for each resource, not in total
    leave: float = 0.5  # chance per round that a node inside leaves
    churn: int = 0  # nodes that join or leave in each round
    requesters: int = 0  # nodes that make requests in rounds; 0: all
    outsiders: int = 0  # nodes that are not members of the DHT, and make requests through a member
    replica_life: float = 0.0  # mean seconds until a replica loses its memory; 0: never

    @property
    def total(self) -> int:
        """Roughly how many entries to expect."""
        if self.rounds:
            return self.rounds * self.resources
        if self.seconds:
            return int(self.rate * self.seconds)
        return self.requests * (self.askers if self.workload == "rounds" else self.nodes)

    @property
    def spares(self) -> int:
        """How many nodes join in the course of the run."""
        return self.churn // 2 * self.rounds

    def describe(self) -> dict[str, Any]:
        return asdict(self)


def default_k(protocol: type[Mutex], nodes: int) -> int:
    """k if it is not given: 3 (or fewer nodes), and 1 on a DHT as in the papers.

    On a DHT a larger k means a smaller quorum, so it has to be asked for.
    """
    one = issubclass(protocol, Routed) or not protocol.about.many
    return 1 if one else max(1, min(Config.k, nodes))


def backup_stack(overlay: str = "full", census: bool = True) -> tuple[str, ...]:
    """The layers of FK section 5: copies at the successors; with `census`, a census rebuilds a gate that lost some."""
    return (*(("regenerate",) if census else ()), "channel", "homes", overlay)


def check(config: Config, protocol: type[Mutex]) -> None:
    """Raise BadInput, with a message of one line, if the configuration makes no sense."""
    check_size(protocol, config.nodes, config.k)
    check_votes(protocol, config.nodes, config.k, config.options)
    check_seed(config.seed)
    if not config.rate > 0:
        raise BadInput(f"rate must be above 0 requests per second, not {config.rate:g}")
    if config.rate < SLOWEST:
        raise BadInput(f"rate must be at least {SLOWEST:g} requests per second, not {config.rate:g}")
    if not config.cs >= 0:
        raise BadInput(f"cs must be 0 or more seconds, not {config.cs:g}")
    if config.requests < 1:
        raise BadInput(f"requests must be at least 1, not {config.requests}")
    if max(config.requests, config.rounds) > MOST:
        raise BadInput(f"requests and rounds must be at most {MOST:,}, not {max(config.requests, config.rounds):,}")
    if not 0 <= config.warmup < config.requests:
        raise BadInput(f"warmup must be 0..{config.requests - 1} (below requests), not {config.warmup}")
    if not 0.0 <= config.give_up <= 1.0 or not config.give_up_after > 0:
        raise BadInput("give_up is SHARE:SECONDS with a share between 0 and 1 and more than 0 seconds")
    check_times(config)
    if config.outsiders:
        check_outsiders(config, protocol)
    if "homes" in config.stack:
        check_backups(config, protocol)
    if config.workload == "rounds" and not config.rounds and not 1 <= config.askers <= config.nodes:
        raise BadInput(f"askers must be 1..{config.nodes} (the number of nodes), not {config.askers}")


def check_outsiders(config: Config, protocol: type[Mutex]) -> None:
    members = config.nodes - config.outsiders
    if "responses" not in protocol.about.options:
        raise BadInput(f"outsiders are for sigma and strawman: in {protocol.about.name} every client is a member")
    if not 0 <= config.outsiders < config.nodes:
        raise BadInput(f"outsiders must be 0..{config.nodes - 1} (below the number of nodes), not {config.outsiders}")
    if config.options.get("replicas", 2 * config.k + 1) > members:
        raise BadInput(f"{members} members are too few for that many replicas: use fewer outsiders")
    if config.options.get("responses") == "routed" or config.churn:
        raise BadInput(
            "answers cannot be routed to outsiders, and outsiders do not churn: leave out one of these options"
        )


def check_backups(config: Config, protocol: type[Mutex]) -> None:
    backups = config.options.get("backups", BACKUPS)
    if not 0 <= backups < config.nodes:
        raise BadInput(f"backups must be 0..{config.nodes - 1} (below the number of nodes), not {backups}")
    if issubclass(protocol, Routed) or protocol.about.detectors or protocol.timed:
        name = protocol.about.name
        raise BadInput(f"{name} handles failures by itself: backups are for protocols such as fair_k")
    if config.resources > 1:
        raise BadInput(f"backups are for one gate, not {config.resources} resources")


def check_times(config: Config) -> None:
    """Check the options of runs that last for a set time, and of rounds that begin at set times."""
    if config.seconds < 0 or not 0 <= config.warmup_seconds <= config.seconds:
        raise BadInput("warmup_seconds must be at least 0 and less than seconds")
    if config.seconds and config.seconds == config.warmup_seconds:
        raise BadInput(
            f"warmup_seconds {config.warmup_seconds:g} leaves nothing to measure of seconds {config.seconds:g}"
        )
    for seconds in (config.cs, config.give_up_after, config.seconds, config.round_seconds, config.replica_life):
        seconds_to_ns(seconds)  # raises BadInput if it is too long
    if config.resources < 1:
        raise BadInput(f"resources must be at least 1, not {config.resources}")
    seats = (config.nodes + config.spares) * config.resources
    if seats > MOST:
        raise BadInput(f"{seats:,} pairs of a node and a gate are too many: the simulator can number {MOST:,}")
    if config.rounds < 0 or (config.rounds and config.workload != "rounds"):
        raise BadInput("rounds must be at least 1, and needs the workload rounds")
    if config.churn < 0 or config.churn % 2 or (config.churn and not config.rounds):
        raise BadInput("churn must be an even number of nodes, and needs rounds")
    if not 0 <= config.requesters <= config.nodes:
        raise BadInput(f"requesters must be 0..{config.nodes} (the number of nodes), not {config.requesters}")
    most = config.requesters or config.nodes
    if config.rounds and config.per_resource and config.requests > most:
        raise BadInput(
            f"requests must be at most {most} per resource (the number of requesters), not {config.requests}"
        )
