"""The output of the commands. Rejected input is tested in test_input.py, exit codes in test_exits.py."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from fairgate import __version__
from fairgate.cli.app import COMMANDS, run
from fairgate.cli.demo import simulated
from fairgate.cli.sim import command as sim
from fairgate.registry import PROTOCOLS
from fairgate.sim.config import Config
from fairgate.sim.run import simulate
from fairgate.sim.summary import Result

SMALL = ("--nodes", "8", "--requests", "4")
KEYS = {"protocol", "nodes", "k", "seed", "entries", "events", "wait_mean", "wait_max", "spread", "messages_per_entry"}
KEYS |= {"max_inside", "overtakes", "violations", "seconds"}

Said = tuple[int, str, str]
Run = Callable[..., Said]


@pytest.fixture
def fairgate(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command in this process and returns its exit code, stdout and stderr."""
    monkeypatch.delenv("COLUMNS", raising=False)

    def do(*arguments: str) -> Said:
        code = run(arguments)
        return code, *capsys.readouterr()

    return do


# The command itself.


def test_version(fairgate: Run) -> None:
    code, out, _ = fairgate("--version")
    assert code == 0
    assert out.startswith(f"fairgate {__version__} (")


def test_without_arguments_it_prints_its_help(fairgate: Run) -> None:
    code, out, err = fairgate()
    assert (code, err) == (0, "")
    assert all(name in out for name in COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(fairgate: Run, name: str) -> None:
    code, out, _ = fairgate(name, "--help")
    assert fairgate(name, "-h") == (code, out, "")
    assert code == 0
    assert f"Usage: fairgate {name}" in out


# Output of sim.


def test_json_result_of_one_run(fairgate: Run) -> None:
    code, out, err = fairgate("sim", "Fair-K", *SMALL, "--k", "2", "--seed", "7", "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert set(found) >= KEYS
    assert (found["protocol"], found["nodes"], found["k"], found["seed"]) == ("fair_k", 8, 2, 7)
    assert (found["entries"], found["max_inside"], found["violations"], found["interrupted"]) == (32, 2, 0, False)


def test_json_result_of_trials(fairgate: Run) -> None:
    code, out, err = fairgate("sim", "fair_k", *SMALL, "--trials", "3", "--workers", "2", "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert set(found) >= KEYS
    assert (found["entries"], found["interrupted"]) == (96, False)
    assert [trial["seed"] for trial in found["trials"]] == [1, 2, 3]


def test_result_table_of_one_run(fairgate: Run) -> None:
    code, out, err = fairgate("sim", "fair_k", *SMALL, "--give-up", "0.5:5")
    assert (code, err) == (0, "")
    assert out.startswith("fair_k: 8 nodes, k = 3, seed 1")
    for row in ("mean wait", "p50", "p90", "p99", "longest wait", "per node, median", "spread", "overtakes"):
        assert row in out
    for row in ("messages per entry", "fk.token ", "load per node", "permits in use", "3 of 3", "cancelled", "events"):
        assert row in out
    assert "no violation: at most 3 inside" in out
    assert max(map(len, out.splitlines())) <= 100


def test_result_table_of_trials(fairgate: Run) -> None:
    code, out, err = fairgate("sim", "fair_k", *SMALL, "--trials", "2")
    assert (code, err) == (0, "")
    assert "2 trials, seeds 1 to 2" in out
    assert "64 entries" in out
    assert "no violation" in out


def test_default_k(fairgate: Run) -> None:
    assert json.loads(fairgate("sim", "maekawa", *SMALL, "--json")[1])["k"] == 1
    assert json.loads(fairgate("sim", "fair_k", "--nodes", "2", "--requests", "2", "--json")[1])["k"] == 2


def test_options_reach_the_simulator(fairgate: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every option of the command line ends up in the Config of the run."""
    seen: list[Config] = []

    def remember(config: Config, *_: object) -> Result:
        seen.append(config)
        return simulate(replace(config, requests=1, warmup=0))

    monkeypatch.setattr(sim, "simulate", remember)
    words = """--nodes 9 --k 2 --rate 2 --cs 0.5 --latency uniform:0.1,0.2 --requests 30 --seed 5 --warmup 3
        --faults loss:0.01 --workload rounds --askers 4 --give-up 0.25:8 --exponential-cs --channel --no-check
        --marks --waits {0}/waits.csv --usage {0}/usage.csv
        --option lease=2.5s --option drift=7 --option channel_resend=300ms"""
    assert fairgate("sim", "leased", *words.format(tmp_path).split())[0] == 0
    assert seen == [
        Config(
            protocol="leased",
            nodes=9,
            k=2,
            rate=2.0,
            cs=0.5,
            latency="uniform:0.1,0.2",
            requests=30,
            seed=5,
            warmup=3,
            faults="loss:0.01",
            workload="rounds",
            askers=4,
            exponential_cs=True,
            give_up=0.25,
            give_up_after=8.0,
            stack=("channel",),
            options={"lease": 2_500_000_000, "drift": 7, "channel_resend": 300_000_000},
            check=False,
            marks=True,
            waits=True,
            usage=True,
        )
    ]


@pytest.mark.parametrize("word", ["false", "no", "Off"])
def test_spellings_of_a_boolean_option(fairgate: Run, word: str) -> None:
    assert fairgate("sim", "fair_k", *SMALL, "--option", f"parent_on_child={word}")[0] == 0


def test_a_violation_is_printed_and_exits_with_1(fairgate: Run) -> None:
    code, out, err = fairgate("sim", "fair_k", *SMALL, "--faults", "crash:0@5")
    assert code == 1
    assert "1 violation:\n  liveness: nothing moves any more" in out
    assert err == "note: fair_k does not survive crash faults: expect the run to stop\n"


@pytest.mark.parametrize(
    ("protocol", "faults", "notes"),
    [
        ("raymond_fd", "crash:3@5", []),
        ("raymond", "crash:3@5", ["raymond does not survive crash faults: expect the run to stop"]),
        ("fair_k --channel", "loss:0.1,dup:0.1", []),
        ("fair_k", "loss:0.1", ["fair_k does not survive loss faults: add --channel, or expect the run to stop"]),
        ("leased --channel", "crash:3@5", ["leased survives crash of a client, but no other crash"]),
        ("non_e2e_faults --option lease=10s", "crash:3@5", []),
        (
            "non_e2e_faults",
            "crash:3@5",
            [
                "non_e2e_faults survives crash faults only with leases: add --option lease=10s,"
                " or expect the run to stop"
            ],
        ),
    ],
)
def test_a_warning_for_faults_the_protocol_does_not_survive(
    fairgate: Run, protocol: str, faults: str, notes: list[str]
) -> None:
    _, out, err = fairgate("sim", *protocol.split(), *SMALL, "--faults", faults, "--json")
    assert json.loads(out)["protocol"] == protocol.split(maxsplit=1)[0]
    assert err.splitlines() == [f"note: {note}" for note in notes]


def test_a_warning_for_a_living_ring_that_loses_many_messages(fairgate: Run) -> None:
    ring = ("sim", "e2e_ft", "--nodes", "8", "--requests", "1", "--overlay", "living-pastry", "--latency", "0.05")
    told = (
        "note: nodes of a living ring that loses 20% of its messages take each other for dead, and two may serve one"
        " key: e2e_ft may let two in above 5%; add --channel, or use a settled overlay\n"
    )
    assert fairgate(*ring, "--faults", "loss:0.2")[2] == told
    assert fairgate(*ring, "--faults", "loss:0.05")[2] == ""
    assert fairgate(*ring, "--faults", "loss:0.2", "--channel")[2] == ""


def test_an_unchecked_run_says_so(fairgate: Run) -> None:
    assert "not checked" in fairgate("sim", "fair_k", *SMALL, "--no-check")[1]


# protocols and demo.


def test_protocols_lists_every_protocol(fairgate: Run) -> None:
    code, out, _ = fairgate("protocols")
    assert code == 0
    lines = out.splitlines()
    for name in PROTOCOLS:
        assert len([line for line in lines if line.split()[:1] == [name]]) == 2  # one row in each of the two tables
    assert "lease=10s" in out


def test_protocols_as_json(fairgate: Run) -> None:
    found = json.loads(fairgate("protocols", "--json")[1])
    assert [one["name"] for one in found] == list(PROTOCOLS)
    assert found[0]["options"] == {"parent_on_child": True}


def test_simulated_demo(fairgate: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulated, "LAN", replace(simulated.LAN, requests=20))
    code, out, err = fairgate("demo", "--simulated")
    assert (code, err) == (0, "")
    assert "2,000 entries each" in out
    assert "no violation" in out
    assert "Try next:" in out
