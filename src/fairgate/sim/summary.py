"""What came out of a run, in seconds, for people and for programs."""

from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from fairgate.core.units import SECOND
from fairgate.sim.engine import Engine
from fairgate.sim.quantiles import quantiles


@dataclass(frozen=True)
class Result:
    protocol: str
    nodes: int
    k: int
    seed: int
    entries: int
    events: int
    wait_mean: float
    wait_max: float
    wait_p50: float
    wait_p90: float
    wait_p99: float
    spread: float  # longest wait less the mean: FK's measure of fairness
    node_max_median: float  # of each node's longest wait
    node_max_p90: float
    messages_per_entry: float
    messages: dict[str, int]  # by kind, each counted once however many hops it takes
    hops: int  # of all messages: as many as there are messages, where no overlay passes them on
    hops_by_kind: dict[str, int]
    load: dict[str, float]  # messages received by a node: mean, p50, p90, max
    load_mean: float
    load_max: int
    throughput: float  # entries a second, after the warm-up
    backlog: int  # who still waited at the end
    units_mean: float  # permits in use, on average over time
    max_inside: int
    overtakes: int  # pairs (who came in, who had asked earlier and still waited)
    max_displacement: int  # the most that one entry overtook
    max_overtaken: int  # the most often that one request was overtaken
    cancelled: int
    lost: int
    violations: int
    broken: tuple[str, ...]  # the violations in words, the first hundred
    marks: dict[str, int]
    simulated: float  # seconds in the run
    seconds: float  # seconds it took
    interrupted: bool
    usage: tuple[tuple[float, int], ...] = ()

    def as_json(self) -> dict[str, Any]:
        found = asdict(self)
        if not self.usage:
            del found["usage"]
        return found


def summarise(engine: Engine, protocol: str, seed: int, seconds: float, interrupted: bool) -> Result:
    metrics = engine.metrics
    p50, p90, p99 = quantiles(metrics.kept_waits(), (0.5, 0.9, 0.99))
    maxima = metrics.node_maxima()
    loads = engine.loads()
    load_p50, load_p90 = quantiles(loads, (0.5, 0.9))
    sent, passed = engine.sent_by_tag(), engine.passed_by_tag()
    hops_by_kind = {kind: count + passed.get(kind, 0) for kind, count in sent.items()}
    entries = metrics.entries - engine.warm_entries
    lasted = (engine.now - engine.warm_at) / SECOND
    mean = metrics.wait_total / metrics.counted / SECOND if metrics.counted else 0.0
    longest = metrics.wait_max / SECOND
    held = engine.inside_time + engine.now * engine.inside()  # those inside have been there until now
    worked = engine.now - (engine.joins.opened if engine.joins is not None else 0)
    return Result(
        protocol=protocol,
        nodes=engine.members,
        k=engine.setup.k,
        seed=seed,
        entries=metrics.entries,
        events=engine.events,
        wait_mean=mean,
        wait_max=longest,
        wait_p50=p50 / SECOND,
        wait_p90=p90 / SECOND,
        wait_p99=p99 / SECOND,
        spread=longest - mean,
        node_max_median=median(maxima) / SECOND,
        node_max_p90=quantiles(maxima, (0.9,))[0] / SECOND,
        messages_per_entry=(engine.sent_total() - engine.warm_sent) / entries if entries else 0.0,
        messages=sent,
        hops=sum(hops_by_kind.values()),
        hops_by_kind=hops_by_kind,
        load={"mean": sum(loads) / len(loads), "p50": load_p50, "p90": load_p90, "max": max(loads)},
        throughput=entries / lasted if lasted else 0.0,
        backlog=engine.waiting(),
        load_mean=sum(loads) / len(loads),
        load_max=max(loads),
        units_mean=held / worked if worked else 0.0,
        max_inside=max(occupancy.max_inside for occupancy in engine.occupancies),
        overtakes=sum(line.overtakes for line in engine.lines),
        max_displacement=max(line.max_displacement for line in engine.lines),
        max_overtaken=max(line.max_overtaken for line in engine.lines),
        cancelled=metrics.cancelled,
        lost=metrics.lost,
        violations=engine.violation_count,
        broken=tuple(engine.violations),
        marks=dict(sorted(engine.marks.items())),
        simulated=engine.now / SECOND,
        seconds=seconds,
        interrupted=interrupted,
        usage=tuple((when / SECOND, inside) for when, inside in engine.usage or ()),
    )
