"""The holes that papers/*.md list: each has a recorded run in papers/holes, which `fairgate replay` draws.

Three things are tested for each hole. Replaying the recorded run reproduces it, and it breaks the property that the
paper's file names. The search that found the run finds it again, and finds no shorter one. The same case has no
violation in our version. REWRITE=1 records the runs again.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

import pytest

from fairgate.check.case import Case
from fairgate.check.counterexample import Counterexample
from fairgate.check.explore import Explorer
from fairgate.check.model import Model
from fairgate.check.reenact import StepsInMemory
from fairgate.check.steps import Sent
from fairgate.core.mutex import Mutex
from fairgate.core.properties import Occupancy
from fairgate.core.setup import Setup
from fairgate.lab.coordinator_order import places_early
from fairgate.mutation.deletions import speaking
from fairgate.protocols.bv95 import BV95
from fairgate.protocols.fair_k import FairK
from fairgate.protocols.raymond_fd import RaymondFD
from fairgate.sim.build import build
from fairgate.sim.config import Config
from fairgate.sim.recorder import EngineRecorder
from fairgate.sim.run import run, simulate
from fairgate.swarm.random_ring_config import random_config
from fairgate.swarm.shrink import Shrinker
from fairgate.trace.journal import Step, read
from fairgate.trace.replay import ReplayError, replay
from fairgate.walks.lossy import lossy_walks
from fairgate.walks.stacks import over_channel
from tests.mutants.mutate import mutant
from tests.support.entry_order import most_turns_past

HOLES = Path(__file__).parents[2] / "papers" / "holes"
REWRITE = bool(os.environ.get("REWRITE"))


# Found by the checker: a shortest run of a small case that breaks a property.


@dataclass(frozen=True)
class Hole:
    case: Case
    broken: str  # the property
    without: tuple[str, str] = ("", "")  # a source line and its replacement, to show what the line is for

    def made(self) -> tuple[type[Mutex], AbstractContextManager[None]]:
        """The faulty protocol, and the context in which its messages can be decoded."""
        protocol = self.case.check()
        if not self.without[0]:
            return protocol, nullcontext()
        module = mutant(protocol.__module__.removeprefix("fairgate."), *self.without)
        return getattr(module, protocol.__name__), speaking(module)


FOUND = {
    "rf_44_detector_waits": Hole(Case("raymond_fd_literal", nodes=2, crashes=1), "liveness"),
    "rf_42_permission_of_the_dead": Hole(
        Case("raymond_fd", crashes=1), "k", ("                self.perm_count -= 1  # RF:42\n", "")
    ),
    "rf_30_reply_of_the_dead": Hole(
        Case("raymond_fd", crashes=1), "k", ("        if j in self.crashed:  # RF:30", "        if False:")
    ),
    "fk_lost_request": Hole(Case("fair_k", nodes=2, network="lossy"), "liveness"),
    "fk_crashed_holder": Hole(Case("fair_k", nodes=2, crashes=1), "liveness"),
}


@pytest.mark.parametrize("name", FOUND)
def test_the_checker_finds_the_hole(name: str) -> None:
    hole = FOUND[name]
    protocol, known = hole.made()
    with known:
        explorer = Explorer(hole.case, Model(hole.case, protocol))
        (violation,) = explorer.run().violations
        way = Counterexample(explorer.model, violation)
        if REWRITE:
            way.write_journal(kept(name))
        steps = list(replay(kept(name), protocol))
    assert violation.what.partition(":")[0] == hole.broken
    assert len(steps) == len(way.reenactment.kept.steps)
    assert hole.broken in what_breaks(name, steps, protocol, lost=hole.case.network == "lossy")


@pytest.mark.parametrize("nodes", sorted({hole.case.nodes for name, hole in FOUND.items() if name.startswith("rf")}))
def test_our_version_has_no_violation_in_the_same_cases(nodes: int) -> None:
    report = Explorer(Case("raymond_fd", nodes=nodes, crashes=1)).run()
    assert (report.complete, report.violations) == (True, ())


@pytest.mark.parametrize("name", [name for name, hole in FOUND.items() if hole.without[0]])
def test_with_the_line_restored_the_last_step_of_the_run_grants_nothing(name: str) -> None:
    """Our code reproduces every step of the run except the last one, which lets one node too many in."""
    with pytest.raises(ReplayError) as stopped:
        list(replay(kept(name), RaymondFD))
    _, steps = read(kept(name))
    assert stopped.value.line == 1 + len(list(steps))
    assert "granted" in str(stopped.value.expected)
    assert "granted" not in str(stopped.value.came)


def test_over_a_channel_loss_and_duplication_are_harmless() -> None:
    lossy_walks(over_channel(FairK), range(60))


def kept(name: str) -> Path:
    return HOLES / f"{name}.ndjson"


def what_breaks(name: str, steps: Iterable[Step], protocol: type[Mutex], lost: bool) -> set[str]:
    """The properties that a run breaks, judged from its journal alone, independently of the search that found it."""
    header, _ = read(kept(name))
    setup = Setup.of(header.setup)
    occupancy, under_way = Occupancy(setup.k, protocol.about.slots), Counter[Sent]()
    waiting: set[int] = set()
    inside: dict[int, int] = {}
    crashed: set[int] = set()
    broken: set[str] = set()
    for step in steps:
        me = step.node
        if step.event == "message":
            under_way[step.source, me, step.message] -= 1
        elif step.event == "acquire":
            waiting.add(me)
        elif step.event == "crash":
            crashed.add(me)
            waiting.discard(me)
        if step.event in {"release", "crash"} and me in inside:
            occupancy.leave(me, inside.pop(me))
        for effect in step.effects:
            if effect[0] == "send":
                under_way[me, effect[1], effect[2]] += 1
            elif effect[0] == "granted":
                waiting.discard(me)
                inside[me] = effect[2]
                broken.add(occupancy.enter(me, *effect[2:]).partition(":")[0])
    moving = [flight for flight, copies in under_way.items() if copies > 0 and flight[1] not in crashed]
    if waiting and len(moving) <= lost and not inside:
        broken.add("liveness")
    return broken


# Found by a swarm: random small simulations, of which the first failure is shrunk. All messages take one second.


def constant(config: Config) -> Config:
    """The same configuration without faults and cancels. Only the pauses between requests stay random."""
    return replace(
        config,
        latency="1",
        faults="",
        give_up=0.0,
        stack=(),
        options={},
        exponential_cs=False,
        workload="closed",
        marks=False,
        census_every=None,
    )


def steps_of(config: Config) -> list[Step]:
    engine, written = build(config), StepsInMemory()
    engine.recorder = EngineRecorder(written, engine)
    assert run(engine, None)
    assert not engine.violations
    return written.steps


def out_of_order(config: Config) -> str:
    early = max(places_early(steps_of(config)), default=0)
    return f"order: one came {early} places early" if early else ""


def turns_past(config: Config) -> str:
    turns = most_turns_past(steps_of(config))
    return f"turns: one had {turns} while another waited" if turns > 2 else ""


def smallest(judge: Callable[[Config], str], configs: Iterable[Config]) -> Config:
    config, broken = next((config, broken) for config in configs if (broken := judge(config)))
    return Shrinker(config, broken, judge=judge).shrunk(plain=True).config


ORDER = Config("fair_k", nodes=4, k=2, rate=1.0, cs=10.0, latency="1", requests=1, seed=1)
TURNS = Config("bv95", nodes=6, k=1, rate=10.0, cs=1.0, latency="1", requests=3, seed=2)


def kept_run(name: str, config: Config, protocol: type[Mutex]) -> list[Step]:
    """The recorded run. Checks that simulating this configuration and replaying the journal give the same steps."""
    if REWRITE:
        simulate(config, journal=str(kept(name)))
    again = list(replay(kept(name), protocol))
    assert again == steps_of(config)
    return again


def test_the_swarm_finds_entries_out_of_coordinator_order() -> None:
    """FK: "all the requests are satisfied in order of their coordinator timestamps". False even at constant latency."""
    found = smallest(out_of_order, (constant(random_config("fair_k", 1, i)) for i in count()))
    assert replace(found, askers=ORDER.askers, give_up_after=ORDER.give_up_after) == ORDER
    assert max(places_early(kept_run("fk_coordinator_order", ORDER, FairK))) == 1


def test_with_one_queue_entries_follow_the_coordinator_order() -> None:
    assert not out_of_order(replace(ORDER, k=1))
    assert not any(out_of_order(constant(replace(random_config("fair_k", 1, i), k=1))) for i in range(100))


def test_bv95_with_an_appended_cache_is_not_first_come_first_served() -> None:
    """FK: "[2] provides FIFO ordering on requests of individual queues". Not with the cache that fits FK's figures."""
    found = smallest(turns_past, (constant(replace(random_config("bv95", 1, i), k=1)) for i in count()))
    assert replace(found, askers=TURNS.askers, give_up_after=TURNS.give_up_after) == TURNS
    assert most_turns_past(kept_run("bv95_append_overtakes", TURNS, BV95)) == 3


@pytest.mark.parametrize("protocol", ["bv95", "naimi_trehel", "fair_k"])
def test_plain_path_reversal_is_first_come_first_served(protocol: str) -> None:
    options = {"cache": "none"} if protocol == "bv95" else {}
    same = [TURNS, *[constant(replace(random_config("bv95", 1, i), k=1)) for i in range(100)]]
    assert not any(turns_past(replace(config, protocol=protocol, options=options)) for config in same)
