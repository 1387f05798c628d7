"""Swarms: a swarm finds mistakes, shrinks them to a command that shows them, and finds nothing in correct protocols."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import typer

from fairgate.cli.sim.command import sim_command
from fairgate.cli.swarm.command import exit_code_of, swarm_command
from fairgate.cli.swarm.command_line import command_line_of, sim_arguments
from fairgate.core.mutex import Mutex
from fairgate.errors import BadInput
from fairgate.protocols.raymond_fd import RaymondFD, RaymondFDLiteral
from fairgate.protocols.sigma.strawman import Strawman
from fairgate.recovery.channel import Channel
from fairgate.registry import PROTOCOLS, find_protocol
from fairgate.sim.config import Config
from fairgate.sim.summary import Result
from fairgate.swarm.marks import marks_of
from fairgate.swarm.promise import claims, everybody_comes_in, promised
from fairgate.swarm.random_ring_config import random_config
from fairgate.swarm.run import Limits, SwarmReport, attempt, property_of, swarm
from fairgate.swarm.shrink import Shrunk, fit, shrink, simpler
from fairgate.trace.journal import read
from tests.mutants.mutate import mutant

LITERAL = "raymond_fd_literal"
WHOLE = [name for name, kind in PROTOCOLS.items() if "literal" not in name and kind is not Strawman]


def smallest(report: SwarmReport, kind: str = "") -> Shrunk:
    """Shrink the first failure, or the first that begins with `kind`."""
    run, broken = next(failure for failure in report.failures if failure[1].startswith(kind))
    return shrink(random_config(report.protocol, report.seed, run), broken)


# Random configurations.


@pytest.mark.parametrize("name", ["fair_k", "raymond_fd", "leased"])
def test_the_same_seed_draws_the_same_configurations(name: str) -> None:
    assert [random_config(name, 1, run) for run in range(50)] == [random_config(name, 1, run) for run in range(50)]
    assert random_config(name, 1, 0) != random_config(name, 2, 0)
    assert random_config(name, 1, 0) != random_config(name, 1, 1)


def test_workers_change_nothing_but_the_time() -> None:
    alone, together = (swarm(LITERAL, 1, Limits(60), workers) for workers in (1, 2))
    assert (alone.runs, alone.failures, alone.marks) == (together.runs, together.failures, together.marks)


def test_configurations_vary_in_every_respect() -> None:
    configs = [random_config("raymond_fd", 1, run) for run in range(200)]
    assert {config.nodes for config in configs} == set(range(2, 9))
    assert {config.requests for config in configs} == set(range(1, 7))
    assert {config.workload for config in configs} == {"closed", "open", "rounds"}
    assert {config.stack for config in configs} == {(), ("channel",)}
    faults = ",".join(config.faults for config in configs)
    assert all(f"{kind}:" in faults for kind in ("loss", "dup", "reorder", "partition", "crash", "doubt"))


def test_a_time_limit_ends_a_swarm() -> None:
    assert swarm("fair_k", 1, Limits(None, 0.0)).runs == 0


# Promises.


def test_a_literal_version_is_held_to_the_promise_of_its_base() -> None:
    assert RaymondFDLiteral.about.survives == ()
    assert claims(RaymondFDLiteral) == claims(RaymondFD) == {"crash"}


@pytest.mark.parametrize(
    ("config", "fine"),
    [
        (Config("fair_k", 4, faults="loss:0.1"), False),
        (Config("fair_k", 4, faults="loss:0.1,dup:0.1,partition:0-1/2-3@5+5", stack=("channel",)), True),
        (Config("fair_k", 4, faults="partition:0-1/2-3@5", stack=("channel",)), False),  # never heals
        (Config("fair_k", 4, faults="reorder:0.5"), True),
        (Config("fair_k", 4, faults="crash:1@50"), False),
        (Config("fair_k", 4, faults="reset:1@50+1"), False),
        (Config("leased", 4, faults="crash:1@50"), True),
        (Config("leased", 4, faults="crash:0@50"), False),  # the root
        (Config("leased", 4, options={"lease": 2 * 10**9}), False),  # as long as a round trip
        (Config("raymond_fd", 4, faults="crash:0@50"), True),
        (Config("raymond_fd", 2, faults="crash:0@50,crash:1@50"), False),  # no node is left
        (Config("raymond_fd", 4, faults="crash:*2@50"), False),  # other nodes may be drawn after a change
        (Config("raymond_fd", 4, faults="crash:0@3"), False),  # during the initialization
        (Config("raymond_fd", 4, faults="crash:0@50,loss:0.1", stack=("channel",)), False),
    ],
)
def test_promises(config: Config, fine: bool) -> None:
    assert promised(config) == fine


# Failures.


@pytest.mark.parametrize("name", WHOLE)
def test_a_correct_protocol_has_no_failures(name: str) -> None:
    report = swarm(name, 7, Limits(40))
    assert (report.runs, report.failures) == (40, [])


def test_the_algorithm_as_printed_fails_and_shrinks_to_a_command() -> None:
    shrunk = smallest(swarm(LITERAL, 1, Limits(60)))
    assert shrunk.plain
    assert property_of(shrunk.broken) == "liveness"
    assert shrunk.config.nodes <= 3
    assert shrunk.config.requests == 1
    assert promised(shrunk.config)
    assert exit_code_of(shrunk.config) == 1
    assert exit_code_of(replace(shrunk.config, protocol="raymond_fd")) == 0


MUTANTS = {
    "keeps its parent when it requests (RQ2)": ("            self.parent = NIL  # FK:RQ2", "            pass"),
    "the fence never rises": ("        self.fence += 1\n", ""),
    "fails with an exception": ("        self.fence += 1\n", "        {}[self.me]\n"),
}


@pytest.fixture(params=MUTANTS)
def mutated(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """A mutant of Fair-k, registered as a protocol during the test."""
    protocol: type[Mutex] = mutant("protocols.fair_k", *MUTANTS[request.param]).FairK
    protocol.about = replace(protocol.about, name="fair_k_mutant")
    monkeypatch.setitem(PROTOCOLS, "fair_k_mutant", protocol)
    return "fair_k_mutant"


def test_a_mutant_is_found_and_shrunk(mutated: str) -> None:
    report = swarm(mutated, 1, Limits(40))
    shrunk = smallest(report)
    assert shrunk.config.nodes <= 3
    assert shrunk.plain
    assert (shrunk.config.faults, shrunk.config.stack, shrunk.config.latency) == ("", (), "1")
    assert exit_code_of(shrunk.config) == 1


# Marks.


def test_every_mark_of_fair_k_is_met() -> None:
    report = swarm("fair_k", 1, Limits(150))
    assert "child arrived after release" in report.marks
    assert "a turn came for a cancelled request" in report.marks  # of core/mutex.py
    assert "a message came again" in report.marks  # of the channel
    assert report.missed == []


def test_marks_of_another_protocol_in_the_same_file_do_not_count() -> None:
    only = set(marks_of(RaymondFDLiteral)) - set(marks_of(RaymondFD))
    assert only == {"the detecting node told itself nothing"}


@pytest.mark.parametrize("name", WHOLE)
def test_every_mark_that_is_met_was_found_in_the_source(name: str) -> None:
    met = set(swarm(name, 3, Limits(20)).marks)
    assert met == set(marks_of(find_protocol(name), Channel))


# Shrinking.


def test_a_configuration_that_does_not_fail_is_not_shrunk() -> None:
    config = random_config("fair_k", 1, 0)
    assert shrink(config, "k: never happened", most=5).config == config


def test_every_shrinking_step_changes_the_configuration() -> None:
    for run in range(100):
        config = random_config(LITERAL, 1, run)
        assert config not in list(simpler(config))


@pytest.mark.parametrize(
    ("piece", "fitted"),
    [
        ("crash:5@1.5", "crash:2@1.5"),
        ("reset:1@1+2", "reset:1@1+2"),
        ("partition:0-3/4-7@2+5", "partition:0-1/2@2+5"),
        ("partition:0/1-7@2+5", "partition:0/1-2@2+5"),
        ("loss:0.1", "loss:0.1"),
    ],
)
def test_faults_are_adapted_to_fewer_nodes(piece: str, fitted: str) -> None:
    assert fit(piece, 3) == fitted


# The command line of a configuration.


def read_back(words: list[str], monkeypatch: pytest.MonkeyPatch) -> Config:
    """The configuration that `fairgate sim` would simulate."""
    asked: list[Config] = []

    def remember(config: Config, *_: object) -> tuple[list[Result], int]:
        asked.append(config)
        return [], 0

    monkeypatch.setattr("fairgate.cli.sim.command.one", remember)
    app = typer.Typer()
    app.command()(sim_command)
    app(args=words, standalone_mode=False)
    return asked[0]


@pytest.mark.parametrize("name", ["bv95", "leased", "raymond_fd"])
def test_the_command_line_gives_the_same_configuration(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for run in range(50):
        config = random_config(name, 1, run)
        again = read_back(shlex.split(command_line_of(config))[2:], monkeypatch)
        left_out: dict[str, Any] = {"marks": True, "census_every": 1}
        if config.workload != "rounds":
            left_out["askers"] = config.askers
        if not config.give_up:
            left_out["give_up_after"] = config.give_up_after
        assert replace(again, **left_out) == config


def test_an_invalid_command_has_exit_code_2() -> None:
    assert exit_code_of(Config("fair_k", nodes=0)) == 2


def test_a_run_without_violations_has_exit_code_0() -> None:
    assert exit_code_of(Config("fair_k", 3, 1, requests=1)) == 0


# The command.


def swarmed(capsys: pytest.CaptureFixture[str], name: str, **options: object) -> tuple[int, str]:
    code = swarm_command(name, workers=1, **options)  # type: ignore[arg-type]
    return code, capsys.readouterr().out


def test_json_and_journal(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "minimal.ndjson"
    code, out = swarmed(capsys, LITERAL, runs=40, journal=str(path), as_json=True)
    said = json.loads(out)
    assert code == 1
    assert {"protocol", "runs", "failures", "seed", "marks", "missed", "minimal", "seconds"} <= set(said)
    assert (said["protocol"], said["runs"], said["seed"]) == (LITERAL, 40, 1)
    assert said["failures"] > 0
    assert said["minimal"].startswith("fairgate sim raymond_fd_literal --nodes 2 ")
    header, steps = read(path)
    assert header.protocol == LITERAL
    assert any(step.event == "crash" for step in steps)


def test_the_report_without_failures(capsys: pytest.CaptureFixture[str]) -> None:
    code, out = swarmed(capsys, "leased", runs=40)
    assert code == 0
    assert "leased: 40 runs, seed 1" in out
    assert "the root took a slot back" in out
    assert "never" in out  # the mark "an offer nobody asked for" needs a network that duplicates messages
    assert "no failure in 40 runs" in out


def test_the_report_of_a_failure(capsys: pytest.CaptureFixture[str]) -> None:
    code, out = swarmed(capsys, LITERAL, runs=40)
    assert code == 1
    assert "the first is run 8: liveness" in out
    assert [line for line in out.splitlines() if line.startswith("  fairgate sim raymond_fd_literal ")]


@pytest.mark.parametrize(
    "options",
    [{"runs": 0}, {"minutes": 0.0}, {"minutes": float("nan")}, {"journal": "no/such/place/run.ndjson"}],
)
def test_bad_options_are_refused(options: dict[str, object], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(BadInput):
        swarmed(capsys, "fair_k", **options)


def test_zero_workers_are_refused() -> None:
    with pytest.raises(BadInput, match="--workers"):
        swarm_command("fair_k", workers=0)


def interrupted_after(batches: int) -> Iterator[None]:
    yield from [None] * batches
    raise KeyboardInterrupt


@pytest.mark.parametrize("workers", [1, 2])
def test_ctrl_c_reports_what_was_seen(workers: int) -> None:
    events = interrupted_after(2)
    report = swarm("fair_k", 1, Limits(10_000), workers, lambda _: next(events))
    assert report.interrupted
    assert report.runs == 60


def test_ctrl_c_is_exit_code_130(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*arguments: object) -> SwarmReport:
        report = swarm(LITERAL, 1, Limits(40))
        report.interrupted = True
        return report

    monkeypatch.setattr("fairgate.cli.swarm.command.swarm", interrupted)
    code, out = swarmed(capsys, LITERAL, as_json=True)
    assert code == 130
    assert json.loads(out)["interrupted"]


# Runs that end badly.


def test_an_endless_run_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairgate.swarm.run.MOST_EVENTS", 10)
    broken, _ = attempt(Config("fair_k", 5, 2, requests=20))
    assert broken.startswith("liveness: still busy after 10 events")


def test_a_timed_run_ends_when_the_last_requester_has_crashed() -> None:
    """Otherwise the survivors would resend messages to the crashed node forever."""
    crash = Config("leased", 2, 1, requests=2, cs=100.0, rate=100.0, latency="0.1", faults="crash:1@200")
    assert attempt(replace(crash, stack=("channel",))) == ("", {})


def test_a_partition_ends_even_without_latency() -> None:
    cut = Config("fair_k", 4, 1, requests=5, latency="0", faults="partition:0-1/2-3@1+5", stack=("channel",))
    assert attempt(cut) == ("", {})


def test_the_arguments_are_written_without_needless_digits() -> None:
    words = sim_arguments(Config("bv95", 5, 2, rate=10.0, cs=0.1, options={"tree": "last_used"}))
    assert " ".join(words) == (
        "bv95 --nodes 5 --k 2 --requests 200 --rate 10 --cs 0.1 --latency 1 --seed 1 --option tree=last_used"
    )


def test_the_strawman_is_refused() -> None:
    with pytest.raises(BadInput, match="the strawman livelocks under contention"):
        random_config("strawman", 1, 1)


# On a DHT.


def test_on_a_dht_overlays_replicas_and_resets_are_drawn() -> None:
    configs = [random_config("sigma", 1, run) for run in range(200)]
    assert {config.stack[0] for config in configs} == {"full", "settled_chord", "settled_pastry"}
    assert {config.k for config in configs} == {1, 2}
    assert {config.options["replicas"] for config in configs} >= set(range(1, 8))
    faults = ",".join(config.faults for config in configs)
    assert all(f"{kind}:" in faults for kind in ("loss", "dup", "reorder", "partition", "crash", "reset"))


@pytest.mark.parametrize(
    ("config", "fine"),
    [
        (Config("sigma", 8, 1, faults="reset:2@5+1", options={"replicas": 3}), True),  # owns no replica
        (Config("sigma", 8, 1, faults="reset:1@5+1", options={"replicas": 3}), False),  # 2m - n = 1
        (Config("sigma_zones", 8, 1, faults="reset:2@5+1", options={"replicas": 3}), True),
        (Config("sigma", 8, 1, faults="crash:1@5", stack=("settled_chord",)), False),  # no route around it
        (Config("non_e2e_faults", 8, 1, faults="loss:0.1", options={"lease": 60 * 10**9, "retry": 5 * 10**9}), True),
        (Config("sigma", 8, 1, faults="reset:2@5+1", stack=("full", "channel")), False),  # its numbers start again
        (Config("non_e2e_faults", 8, 1, faults="loss:0.1"), False),  # survived only with leases
        (Config("e2e", 8, 1, faults="loss:0.1"), False),
    ],
)
def test_promises_on_a_dht(config: Config, fine: bool) -> None:
    assert promised(replace(config, latency="0.1")) == fine


def test_every_request_must_be_granted_except_in_zones_that_lose_messages() -> None:
    lossy = Config("sigma", 8, 1, faults="loss:0.4")
    assert everybody_comes_in(lossy)
    assert not everybody_comes_in(replace(lossy, protocol="sigma_zones"))


def test_patience_is_longer_than_a_protocol_waits() -> None:
    """Retries are up to 16 times 99 s apart here. There are no faults, and no node hangs."""
    slow = Config("non_e2e", 6, 1, 100.0, 0.1, "0.3", 6, seed=967_571, workload="open", stack=("settled_pastry",))
    slow = replace(slow, exponential_cs=True, options={"replicas": 2, "retry": 99_005 * 10**6})
    assert attempt(slow) == ("", {})


def test_a_failure_of_the_algorithm_as_printed_is_shrunk_on_a_dht() -> None:
    """SG's figures let two nodes in, even among three nodes or fewer."""
    shrunk = smallest(swarm("sigma_literal", 1, Limits(40)), "k:")
    assert shrunk.config.nodes <= 3
    assert shrunk.plain
