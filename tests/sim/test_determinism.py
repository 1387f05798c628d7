"""The same seed gives the same journal, byte for byte: in every run, interpreted and compiled.

One small run of every protocol, with as many random latencies, cancels, faults, choices, detectors and channels as it
supports; and some of the workloads and latencies that draw random numbers in other ways.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from bisect import bisect_left
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from fairgate.arguments import is_whole
from fairgate.core.kbr import Routed
from fairgate.core.numbers import COMPILED
from fairgate.core.units import NEVER
from fairgate.errors import BadInput
from fairgate.known_options import known_options
from fairgate.registry import PROTOCOLS, find_protocol, make_node
from fairgate.sim.build import check_options
from fairgate.sim.config import Config
from fairgate.sim.run import simulate
from fairgate.trace.replay import replay

ROOT = Path(__file__).parents[2]
MS = 1_000_000

SMALL = Config(nodes=6, k=2, rate=2, cs=0.3, latency="uniform:0.01,0.2", requests=8, give_up=0.3, give_up_after=0.5)
ALONE = replace(SMALL, k=1)
LEASED = replace(SMALL, protocol="leased", options={"lease": 500 * MS})
CRASHES = replace(SMALL, protocol="raymond_fd", faults="crash:*2@3+2,detect:0.5,doubt:0.1,reorder:0.2")

ON_A_DHT = ("strawman", "sigma", "sigma_zones", "e2e", "e2e_ft", "non_e2e", "non_e2e_faults")
GATES = replace(
    ALONE, nodes=20, resources=3, workload="rounds", rounds=4, requests=4, per_resource=True, stack=("settled_pastry",)
)
LONG = replace(SMALL, nodes=12, cs=8e7, give_up=0.0)  # the waits add up to more than 2^64 ns

CASES = {
    "fair_k": SMALL,
    "fair_k_bounded": replace(SMALL, protocol="fair_k_bounded", options={"reentry": 1}),
    "one_line": replace(SMALL, protocol="one_line", options={"reign": 1, "ahead": 2}),
    "naimi_trehel": replace(ALONE, protocol="naimi_trehel"),
    "bv95": replace(SMALL, protocol="bv95"),
    "raymond": replace(SMALL, protocol="raymond"),
    "raymond_fd": CRASHES,
    "raymond_fd_literal": replace(CRASHES, protocol="raymond_fd_literal"),
    "ricart_agrawala": replace(ALONE, protocol="ricart_agrawala"),
    "suzuki_kasami": replace(ALONE, protocol="suzuki_kasami"),
    "srimani_reddy": replace(SMALL, protocol="srimani_reddy"),
    "raymond_tree": replace(ALONE, protocol="raymond_tree"),
    "maekawa": replace(ALONE, protocol="maekawa"),
    "centralised": replace(SMALL, protocol="centralised"),
    "leased": LEASED,
    "leased, a client crashes": replace(LEASED, faults="crash:4@3"),
    "leased over a bad channel": replace(LEASED, stack=("channel",), faults="loss:0.1,dup:0.1,reorder:0.2"),
    "fair_k over a bad channel": replace(SMALL, stack=("channel",), faults="loss:0.1,partition:0-2/3-5@2+1"),
    "fair_k, reordered": replace(SMALL, faults="reorder:0.5"),
    "fair_k, a node is reset": replace(SMALL, faults="reset:5@2+1"),  # it hangs, in the same way every time
    "fair_k, constant latency": replace(SMALL, latency="0.1", give_up=0.0),
    "fair_k, wide area": replace(SMALL, latency="wan", exponential_cs=True),
    "fair_k, open": replace(SMALL, workload="open"),
    "fair_k, rounds": replace(SMALL, workload="rounds", askers=3, exponential_cs=True),
    **{name: replace(ALONE, protocol=name, stack=("settled_pastry",)) for name in ON_A_DHT},
    "sigma, many gates in rounds": replace(GATES, protocol="sigma"),
    "non_e2e, many gates in rounds": replace(GATES, protocol="non_e2e"),
    "e2e over a channel": replace(ALONE, protocol="e2e", stack=("settled_chord", "channel"), faults="loss:0.1,dup:0.1"),
    **{f"{name}, long stays": replace(LONG, protocol=name) for name in ("fair_k", "one_line", "bv95")},
    "fair_k, random long stays": replace(LONG, exponential_cs=True, latency="uniform:0,1e6"),
    "fair_k, rare requests": replace(LONG, rate=1e-8, cs=1e3, workload="open"),
    "bv95, every tree": replace(SMALL, protocol="bv95", options={"tree": "queue_hint", "cache": "sorted"}),
}


def write(name: str, journal: str) -> dict[str, Any]:
    """Run a case and return what it measured, except for the time it took."""
    result = simulate(CASES[name], journal=journal).as_json()
    del result["seconds"]
    found: dict[str, Any] = json.loads(json.dumps(result))
    return found


def test_every_protocol_has_a_case() -> None:
    """Except the literal versions of protocols on a DHT: they hang or flood, which their own tests show."""
    wanted = {name for name, kind in PROTOCOLS.items() if not (issubclass(kind, Routed) and "literal" in name)}
    assert {config.protocol for config in CASES.values()} == wanted, "add a run of the protocol to CASES in this file"


@pytest.mark.parametrize("name", CASES)
def test_two_runs_are_identical(tmp_path: Path, name: str) -> None:
    first, again = str(tmp_path / "first"), str(tmp_path / "again")
    assert write(name, first) == write(name, again)
    assert Path(first).read_bytes() == Path(again).read_bytes()


@pytest.mark.parametrize("name", CASES)
def test_another_seed_gives_another_run(tmp_path: Path, name: str) -> None:
    """Otherwise the comparisons here would prove nothing."""
    one = simulate(CASES[name]).events
    assert any(simulate(replace(CASES[name], seed=seed)).events != one for seed in (2, 3))


@pytest.mark.parametrize("name", CASES)
def test_what_is_measured_does_not_depend_on_the_journal(tmp_path: Path, name: str) -> None:
    without = simulate(CASES[name]).as_json()
    del without["seconds"]
    assert write(name, str(tmp_path / "journal")) == json.loads(json.dumps(without))


@pytest.mark.parametrize("name", CASES)
def test_every_journal_replays(tmp_path: Path, name: str) -> None:
    config, journal = CASES[name], str(tmp_path / "journal")
    result = write(name, journal)
    steps = sum(1 for _ in replay(journal, make_node(config.protocol, config.stack)))
    assert steps > result["entries"] > 0


@pytest.mark.skipif(not COMPILED, reason="it compares compiled modules with plain ones")
@pytest.mark.parametrize("name", CASES)
def test_interpreted_and_compiled_runs_are_identical(tmp_path: Path, name: str) -> None:
    compiled, interpreted = str(tmp_path / "compiled"), str(tmp_path / "interpreted")
    assert plain(f"write({name!r}, {interpreted!r})") == write(name, compiled)
    assert Path(interpreted).read_bytes() == Path(compiled).read_bytes()


@pytest.mark.skipif(not COMPILED, reason="it compares compiled modules with plain ones")
def test_the_largest_options_mean_the_same_interpreted_and_compiled() -> None:
    """Each integer option of each protocol and its layers: no product of options and times exceeds 64 bits."""
    found = with_largest_options()
    assert found == plain("with_largest_options()")
    assert "sigma retry" in found
    assert sum(isinstance(result, list) for result in found.values()) > 30


def with_largest_options() -> dict[str, Any]:
    """What a run of at most 10 s does with each option at its largest accepted value, or why it is refused."""
    found: dict[str, Any] = {}
    for config in CASES.values():
        for name, default in known_options(find_protocol(config.protocol), config.stack).items():
            label = f"{config.protocol} {name}"
            if not is_whole(default) or label in found:
                continue
            largest = replace(config, options={**config.options, name: largest_value(name)}, seconds=10)
            with TemporaryDirectory() as folder:
                journal = Path(folder, "journal")
                try:
                    result = simulate(largest, journal=str(journal))
                    found[label] = [result.events, result.entries, sha256(journal.read_bytes()).hexdigest()]
                except BadInput as refused:
                    found[label] = str(refused)
    return found


def largest_value(name: str) -> int:
    """The largest value of this option that the simulator accepts."""

    def is_refused(value: int) -> bool:
        try:
            check_options({name: value})
        except BadInput:
            return True
        return False

    return bisect_left(range(NEVER), True, key=is_refused) - 1


def plain(expression: str) -> Any:
    """The value of an expression of this module in a process where nothing is compiled."""
    code = (
        "import json; from fairgate.core.numbers import COMPILED; from tests.sim.test_determinism import *; "
        f"assert not COMPILED; print(json.dumps({expression}))"
    )
    run = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "FAIRGATE_PURE": "1"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)
