"""Random small systems of every protocol in the simulator: no property breaks, and every request is granted.

Most latencies are uniform from 0, so messages overtake each other all the time; tokens are counted after every event.
`make test` takes the first 60 runs of each protocol, in which every branch with a `note` must be reached. `make stress`
takes 2,000. A failure prints its configuration: pass it to `simulate` to reproduce the failure.
"""

from __future__ import annotations

import ast
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import fairgate
from fairgate.core.mutex import Mutex
from fairgate.protocols.e2e.literal import E2ELiteral
from fairgate.protocols.e2e.protocol import E2E
from fairgate.protocols.fair_k import FairK
from fairgate.protocols.fair_k_bounded import FairKBounded
from fairgate.protocols.leased import Leased
from fairgate.protocols.non_e2e.fault_tolerant import NonE2EFaults
from fairgate.protocols.non_e2e.literal import NonE2ELiteral
from fairgate.protocols.non_e2e.protocol import NonE2E
from fairgate.protocols.one_line.protocol import OneLine
from fairgate.protocols.raymond_fd import RaymondFDLiteral
from fairgate.protocols.sigma.protocol import SigmaLiteral
from fairgate.protocols.sigma.strawman import Strawman
from fairgate.protocols.sigma.zones import SigmaZonesLiteral
from fairgate.recovery.channel import Channel
from fairgate.sim.config import Config
from fairgate.sim.run import simulate
from tests.support.stacks import protocols

SHORT, LONG = 60, 2_000
MS = 1_000_000
LEASES = {  # in ms, by latency: a lease that always ends before its answer arrives would let nobody in
    "uniform:0,0.1": (150, 1_000),
    "uniform:0,1": (1_000, 5_000),
    "uniform:0,3": (4_000, 10_000),
    "0.5": (2_000, 5_000),
}
ROOT = Path(fairgate.__file__).parent

UNSAFE = (
    SigmaLiteral,
    SigmaZonesLiteral,
    NonE2ELiteral,
    E2ELiteral,
)  # test_dht_walks.py, tests/mutants/test_sigma_zones.py and tests/paper/test_non_e2e.py show what goes wrong

STACKS: dict[str, tuple[type[Mutex], tuple[str, ...]]] = {
    **{protocol.about.name: (protocol, ()) for protocol in protocols() if protocol not in UNSAFE},
    **{f"{protocol.about.name} over a channel": (protocol, ("channel",)) for protocol in (FairK, Leased)},
}


def plain_config(protocol: type[Mutex], rng: random.Random) -> dict[str, Any]:
    """A system of random size and load."""
    n = rng.randint(2, 7)
    return {
        "protocol": protocol.about.name,
        "nodes": n,
        "k": rng.randint(1, n) if protocol.about.many else 1,
        "rate": rng.choice([0.2, 1.0, 5.0]),
        "cs": rng.choice([0.0, 0.1, 1.0, 3.0]),
        "exponential_cs": rng.random() < 0.5,
        "latency": rng.choice(list(LEASES)),
        "requests": rng.randint(2, 6),
        "seed": rng.randint(0, 10**9),
        "give_up": rng.choice([0.0, 0.2, 0.6]),
        "give_up_after": rng.choice([0.1, 1.0]),
        "census_every": 1,
        "marks": True,
    }


def random_config(name: str, rng: random.Random) -> Config:
    """A random system, with faults that this protocol survives, and random values for its options."""
    protocol, stack = STACKS[name]
    made = plain_config(protocol, rng)
    options = {key: rng.choice(given) for key, given in protocol.about.options.items() if isinstance(given, tuple)}
    faults = rng.choice(["", "reorder:0.3"])
    if protocol is FairK:
        options = {"parent_on_child": rng.random() < 0.5}
    elif protocol is FairKBounded:
        options = {"parent_on_child": rng.random() < 0.5, "reentry": rng.choice([0, 0, 1, 2])}
    elif protocol is OneLine:
        options = {
            "reign": 1,
            "chase": rng.choice([0, 2]),
            "ahead": rng.choice([0, 1, 3]),
            "patience": rng.choice([0, 1]),
        }
    elif protocol is Leased:
        options = {"lease": rng.choice(LEASES[made["latency"]]) * MS}
        faults = rng.choice(["", "reorder:0.3", "dup:0.2"])  # a duplicated message must not grant a slot twice
    elif issubclass(protocol, Strawman):
        options["lease"] = rng.choice(LEASES[made["latency"]]) * MS
        faults = rng.choice(["", "reorder:0.3", "dup:0.2", "loss:0.1,dup:0.1,reorder:0.3"])
    elif issubclass(protocol, E2E):
        options |= {"chord_successors": 1, "chord_fingers": 0}  # routes of several hops
        return Config(**made, stack=("settled_chord",), options=options, faults=faults)
    if stack:
        options["channel_resend"] = rng.choice([200, 1_000]) * MS
        faults = rng.choice(["loss:0.2", "dup:0.3", "loss:0.1,dup:0.1,reorder:0.3", "partition:0/1@1+3"])
    if protocol.about.detectors:
        faults = detected_crashes(made, rng)
    return Config(**made, stack=stack, options=options, faults=faults)


def detected_crashes(made: dict[str, Any], rng: random.Random) -> str:
    """RF's theorem forbids crashes before the initialization is over: 1 s until trust, 3 s each for INIT and ACK."""
    made["requests"] = rng.randint(6, 12)
    words = [
        f"trust:1,doubt:{rng.choice([0, 0.3])},detect:{rng.choice([0.01, '0-2', 2])},distrust:{rng.choice([0, 0.5])}"
    ]
    many = rng.randint(0, made["nodes"] - 1)
    if many:
        words.append(f"crash:*{many}@{7 + 3 * rng.random():.3f}+{rng.choice([0, 0.5, 4])}")
    return ",".join(words)


def stress(name: str, runs: range) -> set[str]:
    """Simulate many runs, and return the marks that they reached."""
    protocol, _ = STACKS[name]
    marks: set[str] = set()
    for number in runs:
        config = random_config(name, random.Random(f"{name} {number}"))
        result = simulate(config)
        if protocol is RaymondFDLiteral:  # the paper's version can hang, but must not break anything else
            broken = [line for line in result.broken if not line.startswith("liveness")]
        else:
            broken = list(result.broken)
        assert not broken, f"{broken[0]} in {config}"
        if "crash" not in config.faults:
            assert result.entries + result.cancelled == config.total, f"a request was lost in {config}"
        assert result.max_inside <= config.k
        marks |= set(result.marks)
    return marks


def notes(*classes: type) -> Iterator[str]:
    """Every mark that these classes or their base classes pass to `note("...")` in their source."""
    for cls in {base for each in classes for base in each.__mro__ if base.__module__.startswith("fairgate.")}:
        path = ROOT / (cls.__module__.removeprefix("fairgate.").replace(".", "/") + ".py")
        for found in ast.walk(ast.parse(path.read_text())):
            if isinstance(found, ast.ClassDef) and found.name == cls.__name__:
                yield from marks_in(found)


def marks_in(source: ast.ClassDef) -> Iterator[str]:
    for call in ast.walk(source):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "note":
            yield from (str(mark.value) for mark in call.args if isinstance(mark, ast.Constant))


# Reached in tests/support/dht_walk.py.
MEMORY_LOST = {"a replica has lost its memory", "two incarnations answer one question"}
MOVED = {"a replica moved"}  # only if the ring has changed in the meantime, as also the next two
OTHER_WAYS = {"a RELEASE went both ways", *MOVED}
BACK = {"a request came back from where the entry's own request went", *MOVED}
NO_ROUNDS = {*MEMORY_LOST, "a round is lost", "a round is lost to a silent replica"}  # only the strawman has rounds
UNREACHED = {
    "e2e": OTHER_WAYS,
    "e2e_ft": {
        *OTHER_WAYS,
        "a TOKEN came again",
        "a vote from before this node lost its memory",  # there are no resets here
        "a REQUEST came after a later one of the same node",  # in `keep` of e2e, which e2e_ft overrides
    },
    "fair_k_bounded": {"child arrived after release"},  # in `on_child` of fair_k, which fair_k_bounded does not use
    "maekawa": {"locked for a request that is over"},  # needs a duplicated REQUEST
    "strawman": MEMORY_LOST,
    "sigma": NO_ROUNDS,
    "sigma_zones": {*NO_ROUNDS, "a member is gone", "a member that joined is asked"},  # nobody joins or leaves here
    "non_e2e": BACK,
    "non_e2e_faults": {*notes(NonE2EFaults)} - {*notes(NonE2E), "an attempt followed another without a YIELD"} | BACK,
    "leased over a channel": {"an offer nobody asked for"},  # needs a duplicated Request
}


@pytest.mark.parametrize("name", STACKS)
def test_short(name: str) -> None:
    protocol, stack = STACKS[name]
    marks = stress(name, range(SHORT))
    wanted = set(notes(protocol, *[Channel for _ in stack]))
    assert wanted - marks == UNREACHED.get(name, set())


@pytest.mark.stress
@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize("name", STACKS)
def test_long(name: str, part: int) -> None:
    """In four parts, so that several cores can run them in parallel."""
    stress(name, range(part * LONG // 4, (part + 1) * LONG // 4))
