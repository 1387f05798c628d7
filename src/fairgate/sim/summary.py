"""The results of a run, with times in seconds."""

from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

from fairgate.core.units import SECOND
from fairgate.sim.engine import Engine
from fairgate.sim.invariants import MOST_VIOLATIONS, when
from fairgate.sim.quantiles import median, quantiles
from fairgate.sim.timeline import Columns, Timeline

SUMS = (
    "cancelled",
    "entries",
    "events",
    "inside",
    "inside_time",
    "lost",
    "overtakes",
    "requests",
    "violations",
    "wait_total",
    "waiting",
    "warm_entries",
    "warm_sent",
)
MOSTS = ("max_displacement", "max_inside", "max_overtaken", "now", "wait_max", "warm_at")


SERIES = ("loads", "node_maxima", "usage", "waits")


@dataclass(frozen=True)
class Result:
    protocol: str
    nodes: int
    k: int
    resources: int  # gates
    seed: int
    requests: int  # made
    entries: int
    events: int
    measured: int  # entries whose waits count: those after the warm-up
    wait_mean: float
    wait_max: float
    wait_p50: float
    wait_p90: float
    wait_p99: float
    spread: float  # longest wait minus mean wait: FK's measure of fairness
    node_max_median: float  # median of the nodes' longest waits, over the nodes that entered after the warm-up
    node_max_p90: float
    messages_per_entry: float
    messages: dict[str, int]  # by kind; a message counts once, no matter how many hops it takes
    hops: int  # of all messages; without an overlay, one per message
    hops_by_kind: dict[str, int]
    load: dict[str, float]  # messages received per node: mean, p50, p90, max
    load_mean: float
    load_max: int
    throughput: float  # entries per second after the warm-up
    backlog: int  # requests that still waited at the end
    contention: (
        float  # nodes that wait or are inside, on average, by Little's law: rate of entries x time in the system
    )
    units_mean: float  # permits in use at all gates together, averaged over time
    max_inside: int  # at one gate
    overtakes: int  # pairs (request that entered, earlier request that still waited)
    max_displacement: int  # the most requests that one entry overtook
    max_overtaken: int  # the most times that one request was overtaken
    cancelled: int
    lost: int
    violations: int
    broken: tuple[str, ...]  # descriptions of the first hundred violations
    marks: dict[str, int]
    simulated: float  # virtual seconds that the run covers
    seconds: float  # real seconds that it took
    interrupted: bool
    # Raw series, which are not part of the JSON object: `fairgate sim` writes them to files.
    loads: Sequence[int] = ()  # messages received by each node
    node_maxima: Sequence[float] = ()  # the longest wait of each node (with several gates: seat) that has one
    usage: tuple[tuple[float, int], ...] = ()  # if recorded: (time, number inside) at every change
    waits: Columns = field(default_factory=dict)  # if recorded: see sim/timeline.py

    def as_json(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in SERIES}


@dataclass(frozen=True)
class Measures:
    """What an engine has measured at all gates or at some of them; times are in ns."""

    nodes: int
    k: int
    resources: int
    now: int
    opened: int  # when the workload began
    warm_at: int
    warm_entries: int
    warm_sent: int
    events: int
    requests: int
    entries: int
    waits: Sequence[int]
    wait_total: int
    wait_max: int
    maxima: Sequence[int]  # the longest wait at each seat that was entered after the warm-up
    loads: Sequence[int]  # messages received by each node
    sent: dict[str, int]
    passed: dict[str, int]
    waiting: int
    inside: int
    inside_time: int
    max_inside: int
    overtakes: int
    max_displacement: int
    max_overtaken: int
    cancelled: int
    lost: int
    violations: int
    broken: tuple[str, ...]
    marks: dict[str, int]

    def packed(self) -> "Measures":
        """A copy that can be sent to another process."""
        return replace(self, waits=array("q", self.waits), maxima=array("q", self.maxima))


def measure(engine: Engine, first: bool = True) -> Measures:
    """What the engine has measured so far.

    If processes share the gates, events that concern all gates happen in each of them, and only the first counts them.
    """
    metrics = engine.metrics
    return Measures(
        nodes=engine.members,
        k=engine.setup.k,
        resources=engine.resources,
        now=max(engine.now, engine.latest),
        opened=engine.joins.opened if engine.joins is not None else 0,
        warm_at=engine.warm_at,
        warm_entries=engine.warm_entries,
        warm_sent=engine.warm_sent,
        events=engine.events - (0 if first else engine.common),
        requests=engine.requests,
        entries=metrics.entries,
        waits=metrics.kept_waits(),
        wait_total=metrics.wait_total,
        wait_max=metrics.wait_max,
        maxima=metrics.node_maxima(),
        loads=engine.loads(),
        sent=engine.sent_by_tag(),
        passed=engine.passed_by_tag(),
        waiting=engine.waiting(),
        inside=engine.inside(),
        inside_time=engine.inside_time,
        max_inside=max(occupancy.max_inside for occupancy in engine.occupancies),
        overtakes=sum(waiters.overtakes for waiters in engine.waiters),
        max_displacement=max(waiters.max_displacement for waiters in engine.waiters),
        max_overtaken=max(waiters.max_overtaken for waiters in engine.waiters),
        cancelled=metrics.cancelled,
        lost=metrics.lost,
        violations=engine.violation_count,
        broken=tuple(engine.violations),
        marks=dict(engine.marks),
    )


def together(parts: Sequence[Measures]) -> Measures:
    """Merge the measures of several shares into those of the whole run."""
    first = parts[0]
    if len(parts) == 1:
        return first

    def summed(name: str) -> int:
        return sum([int(getattr(part, name)) for part in parts])

    def most(name: str) -> int:
        return max([int(getattr(part, name)) for part in parts])

    def counted(name: str) -> dict[str, int]:
        return dict(sum((Counter(getattr(part, name)) for part in parts), Counter()))

    changed: dict[str, Any] = {name: summed(name) for name in SUMS}
    changed |= {name: most(name) for name in MOSTS}
    changed |= {name: counted(name) for name in ("sent", "passed", "marks")}
    changed["waits"] = list(chain.from_iterable(part.waits for part in parts))
    changed["maxima"] = list(chain.from_iterable(part.maxima for part in parts))
    changed["loads"] = [sum(loads) for loads in zip(*(part.loads for part in parts), strict=True)]
    changed["broken"] = tuple(chain.from_iterable(part.broken for part in parts))
    return replace(first, **changed)


def summarise(engine: Engine, protocol: str, seed: int, seconds: float, interrupted: bool) -> Result:
    """The result of an engine that ran all gates."""
    return conclude(measure(engine), protocol, seed, seconds, interrupted)


def conclude(found: Measures, protocol: str, seed: int, seconds: float, interrupted: bool) -> Result:
    """The result that follows from the measures of the whole run."""
    p50, p90, p99 = quantiles(found.waits, (0.5, 0.9, 0.99))
    load_p50, load_p90 = quantiles(found.loads, (0.5, 0.9))
    load_mean = sum(found.loads) / len(found.loads)
    hops_by_kind = {kind: count + found.passed.get(kind, 0) for kind, count in found.sent.items()}
    entries = found.entries - found.warm_entries
    lasted = (found.now - found.warm_at) / SECOND
    mean = found.wait_total / (len(found.waits) * SECOND) if len(found.waits) else 0.0
    longest = found.wait_max / SECOND
    held = found.inside_time + found.now * found.inside  # permits that are still held count until now
    worked = found.now - found.opened
    throughput = entries / lasted if lasted else 0.0
    stay = held / found.entries / SECOND if found.entries else 0.0
    return Result(
        protocol=protocol,
        nodes=found.nodes,
        k=found.k,
        resources=found.resources,
        seed=seed,
        requests=found.requests,
        entries=found.entries,
        events=found.events,
        measured=len(found.waits),
        wait_mean=mean,
        wait_max=longest,
        wait_p50=p50 / SECOND,
        wait_p90=p90 / SECOND,
        wait_p99=p99 / SECOND,
        spread=longest - mean,
        node_max_median=median(found.maxima) / SECOND if found.maxima else 0.0,
        node_max_p90=quantiles(found.maxima, (0.9,))[0] / SECOND,
        messages_per_entry=(sum(found.sent.values()) - found.warm_sent) / entries if entries else 0.0,
        messages=dict(sorted(found.sent.items())),
        hops=sum(hops_by_kind.values()),
        hops_by_kind=dict(sorted(hops_by_kind.items())),
        load={"mean": load_mean, "p50": load_p50, "p90": load_p90, "max": max(found.loads)},
        throughput=throughput,
        contention=throughput * (mean + stay),
        backlog=found.waiting,
        load_mean=load_mean,
        load_max=max(found.loads),
        units_mean=held / worked if worked else 0.0,
        max_inside=found.max_inside,
        overtakes=found.overtakes,
        max_displacement=found.max_displacement,
        max_overtaken=found.max_overtaken,
        cancelled=found.cancelled,
        lost=found.lost,
        violations=found.violations,
        broken=tuple(sorted(found.broken, key=when)[:MOST_VIOLATIONS]),
        marks=dict(sorted(found.marks.items())),
        simulated=found.now / SECOND,
        seconds=seconds,
        interrupted=interrupted,
        loads=found.loads if isinstance(found.loads, array) else array("q", found.loads),
        node_maxima=array("d", (longest / SECOND for longest in found.maxima)),
    )


def with_series(result: Result, timeline: Timeline, usage: bool, waits: bool) -> Result:
    """The result together with the series that were asked for."""
    changes = tuple((when / SECOND, inside) for when, inside in timeline.usage) if usage else ()
    return replace(result, usage=changes, waits=timeline.waits() if waits else {})
