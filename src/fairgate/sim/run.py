"""One simulation, from what a person asked for to what came out."""

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

from fairgate.core.choose import Chooser, from_floats
from fairgate.core.ids import NIL
from fairgate.core.mutex import Mutex
from fairgate.core.numbers import COMPILED
from fairgate.core.setup import Setup
from fairgate.core.units import SECOND, seconds_to_ns
from fairgate.errors import BadInput
from fairgate.overlay.gates import gate_acting
from fairgate.overlay.living import Living
from fairgate.overlay.titles import PERIODS, UPKEEP
from fairgate.recovery.channel import RESEND
from fairgate.registry import OVERLAYS, check_size, check_votes, find_protocol, make_node
from fairgate.sim.churn import plan_lifetimes
from fairgate.sim.engine import Engine
from fairgate.sim.faults import Faults, install, parse_faults
from fairgate.sim.joins import Joins
from fairgate.sim.latency import Latency, Matrix, Uniform, WideArea
from fairgate.sim.latency_files import read_matrix
from fairgate.sim.pool import Pool
from fairgate.sim.recorder import EngineRecorder
from fairgate.sim.rounds import Pace, PacedRounds
from fairgate.sim.shares import First, Other, Share, Stopped
from fairgate.sim.stream import Stream
from fairgate.sim.summary import Measures, Result, conclude, measure, together
from fairgate.sim.workload import Closed, Open, Rounds, Workload
from fairgate.trace.journal import JournalWriter

SLICE = 200_000  # events between two looks at the terminal and at Ctrl-C
HOPS_A_ROUND = 100
LENT_FOR_GOOD = 100  # periods of upkeep that a title is waited for where votes are lent for good
WHOLE = Share()
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


@contextmanager
def no_collections() -> Iterator[None]:
    """What is built stays, and a run makes no cycles: a collection would walk all nodes for nothing. The first one
    after this does, so this should hold for as long as anything is measured."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


@no_collections()
def simulate(config: Config, progress: Progress | None = None, journal: str | None = None, workers: int = 1) -> Result:
    """Run it. Ctrl-C ends it early: the result says so and holds what was measured until then.

    Where gates are nothing to each other, so many processes share them.
    """
    engine = build(config)
    writer = JournalWriter(journal) if journal is not None else None
    if writer is not None:
        writer.header(config.protocol, engine.setup, "sim", config.seed, config.stack)
        engine.recorder = EngineRecorder(writer, engine)
    started = time.perf_counter()
    ended, found = run_all(engine, progress, workers)
    result = conclude(found, config.protocol, config.seed, time.perf_counter() - started, not ended)
    if writer is not None:
        writer.close()
    return result


def run_all(engine: Engine, progress: Progress | None, workers: int) -> tuple[bool, Measures]:
    """Did it come to its end, and what was counted?"""
    workers = min(workers, engine.resources)
    if workers <= 1 or rounds_by_gates(engine) is None:
        return run(engine, progress), measure(engine)
    first = First(workers, lambda share: run_share(engine, share))
    try:
        first.start()
        ended = run(engine, progress and (lambda _: progress(first.entries)), first)
        try:
            parts = first.end(early=not engine.cut)
        except KeyboardInterrupt:
            ended, parts = False, first.end(early=True)
        return ended, together([measure(engine), *parts])
    finally:
        first.close()


def run_share(engine: Engine, share: Other) -> Measures:
    run(engine, share.listen, share)
    return measure(engine, first=False).packed()


@no_collections()
def run(engine: Engine, progress: Progress | None, share: Share = WHOLE) -> bool:
    """To the end, or to Ctrl-C: then False."""
    try:
        rounds = rounds_by_gates(engine)
        if rounds is not None:
            rounds.keep_to(share)
            engine.take_turns(engine.resources, share.number, share.of)
        engine.begin()
        while engine.run(SLICE):
            if progress is not None:
                progress(engine.metrics.entries)
        engine.finish()
    except KeyboardInterrupt:
        return False
    except Stopped:
        pass
    except AssertionError as broken:  # a protocol noticed itself that something is wrong
        engine.violate(f"assertion: {broken} (node {engine.acting})")
    return True


def rounds_by_gates(engine: Engine) -> PacedRounds | None:
    """The rounds of this run, if what happens at one gate is nothing to the others from one round to the next.

    Then each gate may have its round by itself, as if it were alone: what it needs stays in the caches, or another
    process runs it; and it sees what it would have seen.
    """
    rounds = engine.workload
    alone = engine.nodes[0].apart and engine.network is None and engine.joins is None and engine.latency.fixed > 0
    unseen = engine.recorder is None and engine.usage is None  # where all is told in order
    return rounds if isinstance(rounds, PacedRounds) and engine.resources > 1 and alone and unseen else None


@no_collections()
def build(config: Config) -> Engine:
    """The engine, ready to begin. All bad input is found here."""
    protocol = find_protocol(config.protocol)
    check(config, protocol)
    faults = parse_faults(config.faults, config.nodes)
    latency = make_latency(config)
    options = dict(config.options)
    if "channel" in config.stack:
        options.setdefault("channel_resend", 3 * latency.longest or RESEND)
    if config.resources > 1:
        options["resources"] = config.resources
    learns = any(issubclass(OVERLAYS[layer], Living) for layer in config.stack if layer in OVERLAYS)
    if learns:
        options = {**ring_options(protocol, options, latency), **options}
    setup = Setup(tuple(range(config.nodes)), config.k, options=options)
    engine = Engine(
        make_node(config.protocol, config.stack),
        setup,
        latency,
        make_workload(config, latency),
        from_floats(Stream(f"{config.seed}:choices").unit),
        slots=protocol.about.slots,
        warmup=config.warmup,
        check=config.check,
        spares=config.churn // 2 * config.rounds,
    )
    if config.resources > 1:
        engine.chooser = chooser_of_gates(engine, config.seed)
    plan = partial(plan_work, config=config, faults=faults, listens=bool(protocol.about.detectors))
    if learns:
        engine.mortal = True
        engine.joins = Joins(options["overlay_upkeep"], Stream(f"{config.seed}:joins"), plan)
    else:
        plan(engine)
    if config.check and not config.stack:  # below a channel a token may be in two places and still be one
        every = config.census_every
        engine.census_every = max(4096, 32 * config.nodes) if every is None else every
    engine.noting = config.marks
    if config.usage:
        engine.usage = [(0, 0)]
    hold = seconds_to_ns(config.cs + 1.0 / config.rate)
    engine.patience = PATIENCE * (hold + max(latency.fixed, seconds_to_ns(1.0)))
    if config.rounds and latency.fixed > 0:
        engine.patience = NIL  # it ends by itself, and nobody leaves before a round's luck
    return engine


def chooser_of_gates(engine: Engine, seed: int) -> Chooser:
    """Each gate has a stream of its own, so what one chooses is nothing to the others."""
    choosers = [from_floats(Stream(f"{seed}:choices:{gate}").unit) for gate in range(engine.resources)]

    def choose(n: int) -> int:
        return choosers[gate_acting(engine.nodes[engine.acting])](n)

    return choose


def ring_options(protocol: type[Mutex], options: dict[str, Any], latency: Latency) -> dict[str, Any]:
    """Of rings that learn: nobody is there from the start, and titles are waited for as long as votes are lent."""
    upkeep = options.get("overlay_upkeep", max(UPKEEP, 3 * latency.longest))
    lease: int = options.get("lease", protocol.about.options.get("lease", 0))
    drift: int = options.get("drift", protocol.about.options.get("drift", 0))
    wait = lease + (lease // 1_000_000 + 1) * drift if lease else LENT_FOR_GOOD * upkeep
    return {"base": 0, "overlay_upkeep": upkeep, "overlay_wait": max(wait, PERIODS * upkeep)}


def plan_work(engine: Engine, config: Config, faults: Faults, listens: bool) -> None:
    """All that happens at set times, counted from now."""
    install(faults, engine, listens, "regenerate" in config.stack, config.seed)
    plan_measures(config, engine)


def plan_measures(config: Config, engine: Engine) -> None:
    """What belongs to a run that lasts for a set time."""
    if config.warmup_seconds > 0:
        engine.plan(engine.now + seconds_to_ns(config.warmup_seconds), lambda engine: engine.warmed_up())
    if config.seconds > 0:
        engine.plan(engine.now + seconds_to_ns(config.seconds), lambda engine: engine.end())
    if config.replica_life > 0:
        plan_lifetimes(engine, config.replica_life * SECOND, Stream(f"{config.seed}:lifetimes"))
    if config.churn > 0:
        engine.mortal = True


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


def make_workload(config: Config, latency: Latency) -> Workload:
    stream = Stream(f"{config.seed}:workload")
    hold = seconds_to_ns(config.cs)
    workload: Workload
    seats = config.nodes * config.resources
    if config.workload == "closed":
        workload = Closed(seats, config.requests, hold, stream, config.rate)
    elif config.workload == "open" and config.seconds:
        workload = Pool(seats, hold, stream, config.rate)
    elif config.workload == "open":
        workload = Open(seats, config.requests, hold, stream, config.rate)
    elif config.workload == "rounds" and config.rounds:
        return PacedRounds(config.nodes, config.resources, stream, pace(config, latency))
    elif config.workload == "rounds":
        workload = Rounds(config.nodes, config.requests, hold, stream, config.askers)
    else:
        raise BadInput(f"--workload must be closed, open or rounds, not {config.workload!r}")
    workload.hold_random = config.exponential_cs
    workload.give_up_share = config.give_up
    workload.give_up_mean = config.give_up_after * 1e9
    return workload


def pace(config: Config, latency: Latency) -> Pace:
    """A round is long enough for a few dozen hops, one after another, if nothing else is said."""
    length = seconds_to_ns(config.round_seconds) or HOPS_A_ROUND * max(latency.longest, 1)
    return Pace(
        config.rounds, config.requests, config.per_resource, length, config.leave, config.churn, config.requesters
    )


def kind_of_build() -> str:
    return "compiled" if COMPILED else "pure Python"
