"""Judges for mutants of protocols on a DHT: swarms, random runs in which the ring itself changes, and small cases.

In a swarm (swarm/run.py) the overlay does not change. In the runs of walks/dht.py nodes join and leave, keys get new
owners, and nodes learn of crashes; in those of walks/living.py the ring also maintains itself. Nodes lose their memory
only as far as the protocol tolerates it; otherwise the original would fail as well.

The last judge compares costs with those of the original, in the same random runs: hops and waits per entry, how many
requests were overtaken, and how many permits were lost. Most statements that are not needed for safety and liveness are
there to lower these.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from fairgate.check.case import Case
from fairgate.core.kbr import Routed
from fairgate.core.keyed import Keyed
from fairgate.core.message import Message
from fairgate.core.mutex import Mutex
from fairgate.core.units import SECOND
from fairgate.protocols.sigma.protocol import RETRY
from fairgate.protocols.sigma.replica import DRIFT
from fairgate.registry import PROTOCOLS
from fairgate.scenario.manual import Violation
from fairgate.sim.stream import Stream
from fairgate.swarm.random_ring_config import RandomRingConfig
from fairgate.swarm.run import attempt
from fairgate.walks import living
from fairgate.walks.dht import MS, OVERLAYS, Conditions, one_run, over_overlay

MOST_EVENTS = 30_000  # three times what the longest of these runs needs
MOST_TURNS = 10_000  # messages that one node handles at the same time
LEASES = {"lease": 3 * SECOND}
UNTIMED = {"lease": 0, "retry": 0, "prime": False, "replicas": 3}
CALM = Conditions(cancel=0.2)
FAST = Conditions(latency=(0, SECOND), think=SECOND // 10, patience=600 * SECOND)
STORM = Conditions(loss=0.1, dup=0.1, cancel=0.1, until=6 * SECOND, stay=2 * SECOND, patience=600 * SECOND)
SILENT = replace(STORM, requests=2, loss=0.5, dup=0.0, until=100 * SECOND, stay=20 * SECOND)  # renewals of leases fail
MOVING = Conditions(requests=5, joins=2, leaves=1, until=10 * SECOND, patience=600 * SECOND)
HEARD = Conditions(crashes=1, detect=2 * SECOND, until=6 * SECOND, patience=600 * SECOND)
BUSY = Conditions(requests=8, think=300 * MS, idle=20, stay=100 * MS, drift=DRIFT, patience=600 * SECOND)
LOSSY = replace(BUSY, requests=5, loss=0.05, until=600 * SECOND)
LONG = replace(BUSY, requests=4, stay=6 * SECOND)  # twice as long as a lease, so leases must be renewed
FORGETFUL = replace(LONG, resets=2, until=10 * SECOND)
DYING = replace(BUSY, requests=5, stay=2 * SECOND, crashes=1, until=15 * SECOND)
TOLD = replace(DYING, stay=500 * MS, crashes=2, detect=2 * SECOND)
CHANGING = Conditions(requests=4, cancel=0.1, joins=2, leaves=2, until=5 * SECOND, patience=300 * SECOND)
FAILING = replace(CHANGING, joins=1, leaves=1, crashes=1, resets=1, loss=0.05, dup=0.05)
COMING = replace(FAILING, requests=6, stay=2500 * MS, joins=3, leaves=2, resets=2, detect=2 * SECOND, until=40 * SECOND)
LENT = {**LEASES, "overlay_wait": LEASES["lease"] + LEASES["lease"] // 50, "wait": True, "ping": SECOND}
TAKEN_OVER = {**LEASES, "wait": True, "ping": SECOND // 2}  # of e2e_ft: waiters notice soon that an owner has crashed
KEPT = {"overlay_wait": 60 * SECOND}  # no leases: the overlay waits for any node that may be alive
MAJORITY = {"replicas": 20, "quorum": 11}
ROUNDS = {"backoff": 20 * SECOND}  # of the strawman, which livelocks if clients that lost a round soon ask again
BARE = {**ROUNDS, "lease": 0, "resend": 0, "replicas": 3}

Options = dict[str, Any]


@contextmanager
def registered(protocol: type[Mutex]) -> Iterator[None]:
    """Within this context, the mutant is registered under the original's name."""
    name = protocol.about.name
    original = PROTOCOLS[name]
    PROTOCOLS[name] = protocol
    try:
        yield
    finally:
        PROTOCOLS[name] = original


def turn_limited(protocol: type[Routed]) -> type[Routed]:
    """The protocol, with an error if a node sends to itself forever while no time passes."""

    class TurnLimited(protocol):  # type: ignore[misc, valid-type]
        about = protocol.about

        def deliver(self, src: int, msg: Keyed) -> None:
            self.count_turn()
            protocol.deliver(self, src, msg)

        def on_message(self, src: int, msg: Message) -> None:
            self.count_turn()
            protocol.on_message(self, src, msg)

        def count_turn(self) -> None:
            since, turns = self.__dict__.get("turns", (self.now, 0))
            self.__dict__["turns"] = (self.now, turns + 1 if since == self.now else 0)
            if turns > MOST_TURNS:
                raise RuntimeError(f"endless loop: more than {MOST_TURNS} messages at the same time")

    return TurnLimited


def small_swarm(protocol: type[Routed], runs: range) -> None:
    with registered(turn_limited(protocol)):
        for run in runs:
            config = RandomRingConfig(protocol, Stream(f"1:judge:{run}")).config()
            if protocol.about.name == "strawman":  # it livelocks under contention
                config = replace(config, workload="rounds", askers=min(config.askers, 2))
            broken, _ = attempt(replace(config, requests=min(config.requests, 3)), MOST_EVENTS)
            if broken:
                raise Violation(f"{broken} [run {run}]")


def leases_of(protocol: type[Routed]) -> Options:
    """In Sigma `retry` is a percentage; in other protocols a time, which the runs set themselves."""
    return {**LEASES, "retry": RETRY} if protocol.about.name.startswith("sigma") else LEASES


def conditions_for(protocol: type[Routed]) -> list[tuple[Conditions, Options]]:
    """The conditions and options to run under.

    Where nodes lose their memory, all replicas must vote for a winner: then any two winners share one that remembers.
    """
    name = protocol.about.name
    leases = leases_of(protocol)
    unanimous = {"replicas": 5, "quorum": 5, "ping": SECOND // 2, **leases}
    churn = replace(STORM, joins=1, leaves=1)
    if name == "strawman":
        return strawman_conditions(unanimous)
    if name == "non_e2e_faults":
        all_of_it = replace(churn, crashes=1, resets=1)
        return [(CALM, LEASES), (all_of_it, LEASES), (SILENT, LEASES), (HEARD, {"replicas": 7, "quorum": 7})]
    if name == "sigma":  # leases and retries repair nearly every mistake, so it also runs without them
        long = replace(FAST, requests=12)
        bare = [(FAST, UNTIMED), (long, UNTIMED), (replace(long, dup=0.3), {**UNTIMED, "retry": RETRY})]
        return [*bare, (CALM, leases), (STORM, leases), (SILENT, leases), (churn, unanimous)]
    if name == "sigma_zones":  # it tolerates any number of lost memories, so a majority is enough
        coming = [(COMING, {**leases, **MAJORITY}), (replace(COMING, k=2), {**leases, "replicas": 20, "quorum": 7})]
        return [*coming, (CALM, leases), (STORM, leases), (SILENT, leases), (churn, unanimous)]
    if "loss" in protocol.about.survives:
        forgotten = [(replace(churn, crashes=2), TAKEN_OVER)] if name == "e2e_ft" else []
        return [(CALM, leases), (STORM, leases), (SILENT, leases), (churn, unanimous), *forgotten]
    return [(CALM, {}), (FAST, {}), (MOVING, {})]


def strawman_conditions(unanimous: Options) -> list[tuple[Conditions, Options]]:
    lent, routed = {**LEASES, **ROUNDS}, {"responses": "routed"}
    calm, storm, silent = (with_pauses(each) for each in (CALM, STORM, SILENT))
    slow = replace(calm, requests=6, latency=FAST.latency)
    churn = replace(storm, joins=1, leaves=1, crashes=1)
    return [
        (slow, BARE),
        (replace(slow, dup=0.3), {**BARE, "quorum": 3}),  # a vote that nobody gives back stops everybody
        (calm, lent),
        (replace(slow, k=2), {**BARE, "replicas": 5}),
        (replace(storm, k=2), {**lent, "replicas": 5}),
        (storm, {**lent, **routed}),
        (silent, lent),
        (churn, {**unanimous, **ROUNDS}),
        (churn, {**unanimous, **ROUNDS, **routed}),
    ]


def with_pauses(conditions: Conditions) -> Conditions:
    """The same with requests that are rare enough for the strawman, and faults for as long as they go on."""
    return replace(conditions, think=5 * SECOND, until=50 * SECOND, patience=9_000 * SECOND)


def living_conditions_for(protocol: type[Routed]) -> list[tuple[Conditions, Options]]:
    """The same on rings that maintain themselves. Any permit there may be lost, so leases are long enough for one."""
    if protocol.about.name in ("e2e", "non_e2e"):
        return [(CHANGING, KEPT)]
    if protocol.about.name == "strawman":
        return [(with_pauses(each), {**LENT, **ROUNDS}) for each in (CHANGING, FAILING)]
    lent = {**LENT, "retry": 100} if protocol.about.name.startswith("sigma") else LENT
    return [(CHANGING, lent), (FAILING, lent)]


def run_living(protocol: type[Routed], conditions: Conditions, options: Options, seeds: range) -> None:
    for seed in seeds:
        ring = living.LIVING[sorted(living.LIVING)[seed % len(living.LIVING)]]
        living.one_run(ring, turn_limited(protocol), seed, conditions, options)


@dataclass(frozen=True)
class Costs:
    """Per entry."""

    hops: float
    wait: float
    overtakes: float
    lost: float


def costs_of(protocol: type[Routed], conditions: Conditions, options: Options, seeds: range) -> Costs:
    runs = [
        one_run(over_overlay(sorted(OVERLAYS)[seed % len(OVERLAYS)], protocol), seed, conditions, options)
        for seed in seeds
    ]
    entries = sum(run.entries for run in runs)
    totals = [sum(getattr(run, name) for run in runs) for name in ("hops", "waited", "overtakes", "lost")]
    return Costs(*[total / entries for total in totals])


@cache
def original_costs(name: str, conditions: Conditions, options: tuple[tuple[str, Any], ...], seeds: range) -> Costs:
    protocol = PROTOCOLS[name]
    assert issubclass(protocol, Routed)
    return costs_of(protocol, conditions, dict(options), seeds)


def costs_no_more(protocol: type[Routed], conditions: Conditions, options: Options, seeds: range) -> None:
    """Raise Violation if the mutant is worse than the original.

    Where messages are lost or stays are long, protocols that are equally good differ by a few percent.
    """
    usual = original_costs(protocol.about.name, conditions, tuple(options.items()), seeds)
    found = costs_of(turn_limited(protocol), conditions, options, seeds)
    most = 1.1 if conditions.loss or conditions.stay > SECOND else 1.05
    for name, before, now, margin in (
        ("messages", usual.hops, found.hops, 0.0),
        ("time", usual.wait, found.wait, 0.0),
        ("order", usual.overtakes, found.overtakes, 0.02),
        ("lost", usual.lost, found.lost, 0.01),
    ):
        if now > most * before + margin:
            raise Violation(f"{name}: {now:g} per entry instead of {before:g}")


def cost_conditions_for(protocol: type[Routed]) -> list[tuple[Conditions, Options]]:
    name = protocol.about.name
    if name == "strawman":
        busy, lossy, long, forgetful = (
            with_pauses(replace(each, requests=3)) for each in (BUSY, LOSSY, LONG, FORGETFUL)
        )
        lent = {**LEASES, **ROUNDS}
        unanimous = {"replicas": 5, "quorum": 5, **lent}
        two = replace(long, k=2, idle=1)
        for_two = [(two, {**each, "replicas": 5}) for each in (lent, BARE)]
        return [(busy, ROUNDS), *for_two, (lossy, lent), (long, lent), (forgetful, unanimous)]
    if name in ("e2e", "non_e2e"):
        return [(BUSY, {})]
    leases = leases_of(protocol)
    unanimous = {"replicas": 5, "quorum": 5, **leases}
    if name == "sigma_zones":
        coming = (COMING, {**leases, **MAJORITY})
        return [(BUSY, leases), coming, (LOSSY, leases), (LONG, leases), (FORGETFUL, unanimous)]
    usual = [(BUSY, leases), (LOSSY, leases), (LONG, leases), (FORGETFUL, unanimous)]
    if name == "e2e_ft":
        return [*usual, (DYING, TAKEN_OVER)]
    if name == "non_e2e_faults":
        return [*usual, (DYING, LEASES), (TOLD, {"replicas": 7, "quorum": 7})]
    return usual


def run_under(protocol: type[Routed], conditions: Conditions, options: Options, seeds: range) -> None:
    for seed in seeds:
        one_run(over_overlay(sorted(OVERLAYS)[seed % len(OVERLAYS)], turn_limited(protocol)), seed, conditions, options)


def ring_cases(protocol: type[Routed]) -> Iterator[Case]:
    """Small cases without leases and retries, so that nothing depends on time."""
    options = {"lease": 0, "resend": 0, "retry": SECOND, "prime": False, "lives": 1, "backoff": 1}
    if protocol.about.name == "sigma":
        options["retry"] = 0
    ticks = 1 if protocol.timed else 0
    if protocol.about.name == "sigma_zones":  # nobody votes before the first lease is over
        options, ticks = {**options, "lease": SECOND, "retry": RETRY}, 3
    yield Case(protocol.about.name, nodes=2, requests=2, cancels=1, ticks=ticks, options={**options, "replicas": 1})
    yield Case(protocol.about.name, nodes=3, ticks=ticks, options={**options, "replicas": 3})
