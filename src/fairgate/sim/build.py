"""Builds an engine from a configuration. All bad input is found here, before anything runs."""

import gc
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

from fairgate.arguments import is_whole
from fairgate.core.choose import Chooser, from_floats
from fairgate.core.clock import MILLION
from fairgate.core.ids import NIL
from fairgate.core.layers import MakeNode
from fairgate.core.mutex import Mutex
from fairgate.core.setup import Setup
from fairgate.core.units import NEVER, SECOND, seconds_to_ns
from fairgate.errors import BadInput
from fairgate.overlay.chord_table import SUCCESSORS
from fairgate.overlay.gates import gates_of
from fairgate.overlay.living import Living
from fairgate.overlay.outside import inside_or_outside
from fairgate.overlay.titles import PERIODS, UPKEEP
from fairgate.recovery.channel import RESEND
from fairgate.recovery.homes import BACKUPS
from fairgate.registry import OVERLAYS, find_protocol, make_node
from fairgate.sim.churn import plan_lifetimes
from fairgate.sim.config import Config, check
from fairgate.sim.engine import Engine
from fairgate.sim.faults import Faults, install, parse_faults
from fairgate.sim.joins import Joins
from fairgate.sim.latency import Latency, Matrix, Pairs, Uniform, WideArea
from fairgate.sim.latency_files import read_matrix
from fairgate.sim.pool import ClientPool
from fairgate.sim.rounds import Pace, PacedRounds
from fairgate.sim.stream import Stream
from fairgate.sim.timeline import Timeline
from fairgate.sim.workload import Closed, Open, Rounds, Workload

HOPS_A_ROUND = 100
HOPS_WITH_COPIES = 30  # until a message is resent: copies are acknowledged before it leaves and before its answer does
LONGEST_OPTION = NEVER // 16  # 9 years, if it is a time
LENT_FOR_GOOD = 100  # periods of upkeep to wait for a missing title where votes are lent without a lease
PATIENCE = 1_000  # a timed run counts as stuck after this many holds and delays without an entry


@contextmanager
def no_collections() -> Iterator[None]:
    """Disable the garbage collector.

    A run makes no reference cycles and keeps what it built, so a collection would walk all nodes for nothing. The first
    collection afterwards still does: stay inside for as long as anything is measured.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


@no_collections()
def build(config: Config) -> Engine:
    """Return an engine that is ready to begin; raises BadInput if the configuration makes no sense."""
    protocol = find_protocol(config.protocol)
    check(config, protocol)
    faults = parse_faults(config.faults, config.nodes)
    latency = make_latency(config)
    options = dict(config.options)
    if "channel" in config.stack:
        hops = HOPS_WITH_COPIES if "homes" in config.stack else 3
        options.setdefault("channel_resend", hops * latency.longest or RESEND)
    if config.resources > 1:
        options["resources"] = config.resources
    dynamic = any(issubclass(OVERLAYS[layer], Living) for layer in config.stack if layer in OVERLAYS)
    if "homes" in config.stack:
        options = {**home_options(config, options, latency), **options}
        if faults.resets and not dynamic:
            raise BadInput("a node that comes back must join the ring again: with resets, use --overlay living-chord")
    if dynamic:
        options = {**ring_options(protocol, options, latency), **options}
    if config.outsiders:
        options = {"base": config.nodes - config.outsiders, **options, "outsiders": config.outsiders}
    check_options(options)
    setup = Setup(range(config.nodes), config.k, options=options)
    engine = Engine(
        make_stack(config),
        setup,
        latency,
        make_workload(config, latency),
        from_floats(Stream(f"{config.seed}:choices").unit),
        slots=protocol.about.slots,
        warmup=config.warmup,
        check=config.check,
        spares=config.spares,
    )
    if config.resources > 1:
        engine.chooser = chooser_of_gates(engine, config.seed)
    plan = partial(plan_work, config=config, faults=faults, listens=bool(protocol.about.detectors))
    if dynamic:
        engine.mortal = True
        members = config.nodes - config.outsiders
        engine.joins = Joins(members, options["overlay_upkeep"], Stream(f"{config.seed}:joins"), plan)
    else:
        plan(engine)
    if config.check and not config.stack:  # in a stack, a channel may hold several copies of one token
        every = config.census_every
        engine.census_every = max(4096, 32 * config.nodes) if every is None else every
    engine.noting = config.marks
    if config.usage or config.waits:
        engine.timeline = Timeline(engine.n * engine.resources, engine.resources, config.warmup)
    hold = seconds_to_ns(config.cs) + seconds_to_ns(1.0 / config.rate)
    engine.patience = min(PATIENCE * (hold + max(latency.longest, seconds_to_ns(1.0))), NEVER)
    if config.rounds and latency.fixed > 0:
        engine.patience = NIL  # no limit: rounds end by themselves, and nobody has to leave before the next one
    return engine


def check_options(options: Mapping[str, Any]) -> None:
    """Refuse options that compiled protocols cannot compute with: they add a few times an option to the time."""
    for name, value in options.items():
        most = MILLION if name == "drift" else LONGEST_OPTION
        if is_whole(value) and value < 0:
            raise BadInput(f"{name} must be at least 0, not {value:,}")
        if is_whole(value) and value > most:
            raise BadInput(f"{name} must be at most {most:,}, not {value:,}: use a smaller value or a shorter latency")


def make_stack(config: Config) -> MakeNode:
    """A function that makes the nodes of this run."""
    make = make_node(config.protocol, config.stack)
    if not config.outsiders:
        return make
    stack = ("outside" if layer in OVERLAYS else layer for layer in config.stack or ("full",))
    return inside_or_outside(make, make_node(config.protocol, tuple(stack)))


def chooser_of_gates(engine: Engine, seed: int) -> Chooser:
    """A chooser with one stream per gate, so that the choices at one gate do not affect the others."""
    choosers = [from_floats(Stream(f"{seed}:choices:{gate}").unit) for gate in range(engine.resources)]

    def choose(n: int) -> int:
        return choosers[gates_of(engine.nodes[engine.acting]).acting](n)

    return choose


def ring_options(protocol: type[Mutex], options: dict[str, Any], latency: Latency) -> dict[str, Any]:
    """Options of a dynamic ring: all nodes join it, and a title is awaited for as long as votes may be lent."""
    upkeep = options.get("overlay_upkeep", max(UPKEEP, 3 * latency.longest))
    lease: int = options.get("lease", protocol.about.options.get("lease", 0))
    drift: int = options.get("drift", protocol.about.options.get("drift", 0))
    wait = lease + (lease // 1_000_000 + 1) * drift if lease else LENT_FOR_GOOD * upkeep
    return {"base": 0, "overlay_upkeep": upkeep, "overlay_wait": max(wait, PERIODS * upkeep)}


def home_options(config: Config, options: dict[str, Any], latency: Latency) -> dict[str, Any]:
    """Options of a ring with backups: all nodes are on it from the start, with long enough lists of successors."""
    backups: int = options.get("backups", BACKUPS)
    upkeep = options.get("overlay_upkeep", max(UPKEEP, 3 * latency.longest))
    return {
        "backups": backups,
        "base": config.nodes,
        "chord_successors": max(SUCCESSORS, 2 * backups),
        "overlay_wait": PERIODS * upkeep,
    }


def plan_work(engine: Engine, config: Config, faults: Faults, listens: bool) -> None:
    """Plan everything that happens at set times, counted from now."""
    backups = engine.setup.options["backups"] if "homes" in config.stack else None
    install(faults, engine, listens, "regenerate" in config.stack, config.seed, backups)
    plan_measures(config, engine)


def plan_measures(config: Config, engine: Engine) -> None:
    """Plan the end of the warm-up and of the run, and the lifetimes of replicas."""
    if config.warmup_seconds > 0:
        engine.plan(engine.now + seconds_to_ns(config.warmup_seconds), lambda engine: engine.warmed_up())
    if config.seconds > 0:
        engine.plan(engine.now + seconds_to_ns(config.seconds), lambda engine: engine.end())
    if config.replica_life > 0:
        zoned: bool = getattr(find_protocol(config.protocol), "zoned", False)
        plan_lifetimes(engine, config.replica_life * SECOND, Stream(f"{config.seed}:lifetimes"), zoned)
    if config.churn > 0:
        engine.mortal = True


def make_latency(config: Config) -> Latency:
    """The latency model that `config.latency` describes.

    It is written as `1`, `uniform:0.02,0.18`, `pairs:uniform:0,0.2`, `wan` or the name of a file.
    """
    text = config.latency
    stream = Stream(f"{config.seed}:latency")
    if text == "wan":
        return WideArea(config.nodes, stream)
    if text.startswith("pairs:"):
        low, high = uniform_bounds(text.removeprefix("pairs:"))
        return Pairs(seconds_to_ns(low), seconds_to_ns(high), stream)
    if text.startswith("uniform:"):
        low, high = uniform_bounds(text)
        return Uniform(seconds_to_ns(low), seconds_to_ns(high), stream)
    try:
        constant = float(text)
    except ValueError:
        return Matrix(read_matrix(text, config.nodes, stream))
    if not 0 <= constant < float("inf"):
        raise BadInput(f"latency must be 0 or more seconds, not {text}")
    return Latency(seconds_to_ns(constant))


def uniform_bounds(text: str) -> tuple[float, float]:
    try:
        low, high = (float(part) for part in text.removeprefix("uniform:").split(","))
    except ValueError as wrong:
        raise BadInput(f"cannot read the latency {text}: write it as uniform:0.02,0.18") from wrong
    if not 0 <= low <= high < float("inf"):
        raise BadInput(f"latency {text}: the bounds must be at least 0, the lower one first")
    return low, high


def make_workload(config: Config, latency: Latency) -> Workload:
    stream = Stream(f"{config.seed}:workload")
    hold = seconds_to_ns(config.cs)
    workload: Workload
    seats = config.nodes * config.resources
    if config.workload == "closed":
        workload = Closed(seats, config.requests, hold, stream, config.rate)
    elif config.workload == "open" and config.seconds:
        workload = ClientPool(seats, hold, stream, config.rate)
    elif config.workload == "open":
        workload = Open(seats, config.requests, hold, stream, config.rate)
    elif config.workload == "rounds" and config.rounds:
        return PacedRounds(config.nodes, config.resources, stream, pace(config, latency))
    elif config.workload == "rounds":
        workload = Rounds(config.nodes, config.requests, hold, stream, config.askers)
    else:
        raise BadInput(f"workload must be closed, open or rounds, not {config.workload!r}")
    workload.hold_random = config.exponential_cs
    workload.give_up_share = config.give_up
    workload.give_up_mean = config.give_up_after * 1e9
    return workload


def pace(config: Config, latency: Latency) -> Pace:
    """The pace of EE's rounds. By default a round is long enough for HOPS_A_ROUND hops in sequence."""
    length = seconds_to_ns(config.round_seconds) or HOPS_A_ROUND * max(latency.longest, 1)
    detect = parse_faults(config.faults, config.nodes).detect[1]
    return Pace(
        config.rounds,
        config.requests,
        config.per_resource,
        length,
        config.leave,
        config.churn,
        detect,
        config.requesters,
    )
