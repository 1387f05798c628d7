"""Judges for mutants of protocols on a DHT: swarms, random runs in which the ring itself changes, and small cases.

In a swarm (swarm/run.py) the overlay does not change. In the runs of walks/dht.py nodes join and leave, keys get new
owners, and nodes learn of crashes. Nodes lose their memory only as far as the protocol tolerates it; otherwise the
original would fail as well.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from fairgate.check.case import Case
from fairgate.core.kbr import Routed
from fairgate.core.keyed import Keyed
from fairgate.core.message import Message
from fairgate.core.mutex import Mutex
from fairgate.core.units import SECOND
from fairgate.protocols.sigma.protocol import RETRY
from fairgate.registry import PROTOCOLS
from fairgate.scenario.manual import Violation
from fairgate.sim.stream import Stream
from fairgate.swarm.random_ring_config import RandomRingConfig
from fairgate.swarm.run import attempt
from fairgate.walks.dht import OVERLAYS, Conditions, one_run, over_overlay

MOST_EVENTS = 30_000  # three times what the longest of these runs needs
MOST_TURNS = 10_000  # messages that one node handles at the same time
LEASES = {"lease": 3 * SECOND}
UNTIMED = {"lease": 0, "retry": 0, "prime": False, "replicas": 3}
CALM = Conditions(cancel=0.2)
FAST = Conditions(latency=(0, SECOND), think=SECOND // 10, patience=600 * SECOND)
STORM = Conditions(loss=0.1, dup=0.1, cancel=0.1, until=6 * SECOND, stay=2 * SECOND, patience=600 * SECOND)
HEARD = Conditions(crashes=1, detect=2 * SECOND, until=6 * SECOND, patience=600 * SECOND)

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


def conditions_for(protocol: type[Routed]) -> list[tuple[Conditions, Options]]:
    """The conditions and options to run under.

    Where nodes lose their memory, all replicas must vote for a winner: then any two winners share one that remembers.
    """
    name = protocol.about.name
    leases = {**LEASES, "retry": RETRY} if name == "sigma" else LEASES
    unanimous = {"replicas": 5, "quorum": 5, "ping": SECOND // 2, **leases}
    churn = replace(STORM, joins=1, leaves=1)
    if name == "strawman":
        calm, churn = (replace(each, think=60 * SECOND, patience=9_000 * SECOND) for each in (CALM, churn))
        return [(calm, LEASES), (churn, unanimous)]
    if name == "non_e2e_faults":
        all_of_it = replace(churn, crashes=1, resets=1)
        return [(CALM, LEASES), (all_of_it, LEASES), (HEARD, {"replicas": 7, "quorum": 7})]
    if name == "sigma":  # leases and retries repair nearly every mistake, so it also runs without them
        long = replace(FAST, requests=12)
        bare = [(FAST, UNTIMED), (long, UNTIMED), (replace(long, dup=0.3), {**UNTIMED, "retry": RETRY})]
        return [*bare, (CALM, leases), (STORM, leases), (churn, unanimous)]
    if "loss" in protocol.about.survives:
        return [(CALM, leases), (STORM, leases), (churn, unanimous)]
    return [(CALM, {}), (FAST, {})]


def run_under(protocol: type[Routed], conditions: Conditions, options: Options, seeds: range) -> None:
    for seed in seeds:
        one_run(over_overlay(sorted(OVERLAYS)[seed % len(OVERLAYS)], turn_limited(protocol)), seed, conditions, options)


def ring_cases(protocol: type[Routed]) -> Iterator[Case]:
    """Small cases without leases and retries, so that nothing depends on time."""
    options = {"lease": 0, "resend": 0, "retry": SECOND, "prime": False, "lives": 1, "backoff": 1}
    if protocol.about.name == "sigma":
        options["retry"] = 0
    ticks = 1 if protocol.timed else 0
    yield Case(protocol.about.name, nodes=2, requests=2, cancels=1, ticks=ticks, options={**options, "replicas": 1})
    yield Case(protocol.about.name, nodes=3, ticks=ticks, options={**options, "replicas": 3})
