"""One simulation, from what a person asked for to what came out."""

import gc
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

from fairgate.core.choose import from_floats
from fairgate.core.mutex import Mutex
from fairgate.core.numbers import COMPILED
from fairgate.core.setup import Setup
from fairgate.core.units import seconds_to_ns
from fairgate.errors import BadInput
from fairgate.recovery.channel import RESEND
from fairgate.registry import check_size, find_protocol, make_node
from fairgate.sim.engine import Engine
from fairgate.sim.faults import install, parse_faults
from fairgate.sim.latency import Latency, Matrix, Uniform, WideArea
from fairgate.sim.matrix import read_matrix
from fairgate.sim.record import EngineRecorder
from fairgate.sim.stream import Stream
from fairgate.sim.summary import Result, summarise
from fairgate.sim.workload import Closed, Open, Rounds, Workload
from fairgate.trace.journal import JournalWriter

SLICE = 200_000  # events between two looks at the terminal and at Ctrl-C
PATIENCE = 1_000  # a timed run is stuck when nobody came in for so many holds and delays

Progress = Callable[[int], None]


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

    @property
    def total(self) -> int:
        """How many entries there will be, if all goes well."""
        return self.requests * (self.askers if self.workload == "rounds" else self.nodes)

    def describe(self) -> dict[str, Any]:
        return asdict(self)


def simulate(config: Config, progress: Progress | None = None, journal: str | None = None) -> Result:
    """Run it. Ctrl-C ends it early: the result says so and holds what was measured until then."""
    engine = build(config)
    writer = JournalWriter(journal) if journal is not None else None
    if writer is not None:
        writer.header(config.protocol, engine.setup, "sim", config.seed, config.stack)
        engine.recorder = EngineRecorder(writer, engine)
    started = time.perf_counter()
    interrupted = not run(engine, progress)
    result = summarise(engine, config.protocol, config.seed, time.perf_counter() - started, interrupted)
    if writer is not None:
        writer.close()
    return result


def run(engine: Engine, progress: Progress | None) -> bool:
    """To the end, or to Ctrl-C: then False."""
    collecting = gc.isenabled()
    gc.disable()  # a run makes no cycles, and a collection would walk all its nodes
    try:
        engine.begin()
        while engine.run(SLICE):
            if progress is not None:
                progress(engine.metrics.entries)
        engine.finish()
    except KeyboardInterrupt:
        return False
    except AssertionError as broken:  # a protocol noticed itself that something is wrong
        engine.violate(f"assertion: {broken} (node {engine.acting})")
    finally:
        if collecting:
            gc.enable()
    return True


def build(config: Config) -> Engine:
    """The engine, ready to begin. All bad input is found here."""
    protocol = find_protocol(config.protocol)
    check(config, protocol)
    faults = parse_faults(config.faults, config.nodes)
    latency = make_latency(config)
    options = {"channel_resend": 3 * latency.longest or RESEND, **config.options} if config.stack else config.options
    setup = Setup(tuple(range(config.nodes)), config.k, options=options)
    engine = Engine(
        make_node(config.protocol, config.stack),
        setup,
        latency,
        make_workload(config),
        from_floats(Stream(f"{config.seed}:choices").unit),
        slots=protocol.about.slots,
        warmup=config.warmup,
        check=config.check,
    )
    install(faults, engine, bool(protocol.about.detectors), config.seed)
    if config.check and not config.stack:  # below a channel a token may be in two places and still be one
        every = config.census_every
        engine.census_every = max(4096, 32 * config.nodes) if every is None else every
    engine.noting = config.marks
    if config.usage:
        engine.usage = [(0, 0)]
    hold = seconds_to_ns(config.cs + 1.0 / config.rate)
    engine.patience = PATIENCE * (hold + max(latency.fixed, seconds_to_ns(1.0)))
    return engine


def check(config: Config, protocol: type[Mutex]) -> None:
    """One clear line for whatever makes no sense."""
    check_size(protocol, config.nodes, config.k)
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
    if config.workload == "rounds" and not 1 <= config.askers <= config.nodes:
        raise BadInput(f"--askers must be 1..{config.nodes} (the number of nodes), not {config.askers}")


def make_latency(config: Config) -> Latency:
    """`1`, `uniform:0.02,0.18`, `wan` or a file."""
    text = config.latency
    stream = Stream(f"{config.seed}:latency")
    if text == "wan":
        return WideArea(config.nodes, stream)
    if text.startswith("uniform:"):
        low, high = uniform_bounds(text)
        return Uniform(seconds_to_ns(low), seconds_to_ns(high), stream)
    try:
        constant = float(text)
    except ValueError:
        return Matrix(read_matrix(text, config.nodes))
    if not 0 <= constant < float("inf"):
        raise BadInput(f"--latency must be 0 or more seconds, not {text}")
    return Latency(seconds_to_ns(constant))


def uniform_bounds(text: str) -> tuple[float, float]:
    try:
        low, high = (float(part) for part in text.removeprefix("uniform:").split(","))
    except ValueError as wrong:
        raise BadInput(f"cannot read --latency {text}: write it as uniform:0.02,0.18") from wrong
    if not 0 <= low <= high < float("inf"):
        raise BadInput(f"--latency {text}: the bounds must be 0 or more and in order")
    return low, high


def make_workload(config: Config) -> Workload:
    stream = Stream(f"{config.seed}:workload")
    hold = seconds_to_ns(config.cs)
    workload: Workload
    if config.workload == "closed":
        workload = Closed(config.nodes, config.requests, hold, stream, config.rate)
    elif config.workload == "open":
        workload = Open(config.nodes, config.requests, hold, stream, config.rate)
    elif config.workload == "rounds":
        workload = Rounds(config.nodes, config.requests, hold, stream, config.askers)
    else:
        raise BadInput(f"--workload must be closed, open or rounds, not {config.workload!r}")
    workload.hold_random = config.exponential_cs
    workload.give_up_share = config.give_up
    workload.give_up_mean = config.give_up_after * 1e9
    return workload


def kind_of_build() -> str:
    return "compiled" if COMPILED else "pure Python"
