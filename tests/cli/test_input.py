"""Bad input: one line that says what is wrong, exit code 2, and no traceback."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from fairgate.cli.app import run
from fairgate.cli.sim import command as sim

Said = tuple[int, str, str]
Run = Callable[..., Said]


@pytest.fixture
def fairgate(capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command in this process and returns its exit code, stdout and stderr."""

    def do(*arguments: str) -> Said:
        code = run(arguments)
        return code, *capsys.readouterr()

    return do


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["simm"], "no such command 'simm'"),
        (["sim"], "missing argument 'PROTOCOL'"),
        (["sim", "fair_k", "--node", "3"], "no such option: --node"),
        (["sim", "fair_k", "--nodes", "many"], "invalid value for '--nodes'"),
        (["replay"], "missing argument 'FILE'"),
        (["--nope"], "no such option: --nope"),
    ],
)
def test_a_usage_error_is_one_line_with_a_hint(fairgate: Run, arguments: list[str], said: str) -> None:
    code, out, err = fairgate(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith(f"fairgate: {said}")
    assert err.endswith("--help)\n")
    assert err.count("\n") == 1


# Input that sim rejects.


@pytest.mark.parametrize(
    ("protocol", "options", "said"),
    [
        ("fair_k", "--k 0", "k must be 1..100 (the number of nodes), not 0"),
        ("fair_k", "--k 9 --nodes 8", "k must be 1..8 (the number of nodes), not 9"),
        ("maekawa", "--k 2", "maekawa lets one in at a time"),
        ("fair_k", "--replicas 3", "--replicas is only for protocols on a DHT, such as sigma; fair_k is not one"),
        ("sigma", "--overlay torus", "--overlay must be full, chord, pastry"),
        ("sigma", "--responses late", "--responses must be direct or routed, not 'late'"),
        ("e2e", "--responses direct", "--responses is only for sigma and strawman"),
        ("fair_k", "--nodes 0", "nodes must be at least 1, not 0"),
        ("fairk", "", "there is no protocol 'fairk': did you mean fair_k?"),
        ("nope", "", "there is no protocol 'nope': `fairgate protocols` lists them"),
        ("fair_k", "--rate 0", "rate must be above 0"),
        ("fair_k", "--rate -1", "rate must be above 0"),
        ("fair_k", "--rate nan", "--rate must be a number, not nan"),
        ("fair_k", "--cs -1", "cs must be 0 or more"),
        ("fair_k", "--cs inf", "--cs must be a number, not inf"),
        ("fair_k", "--cs 1e30", "1e+30 s is too long: every time must be below 4,611,686,018 s (146 years)"),
        ("fair_k", "--latency -1", "latency must be 0 or more seconds"),
        ("fair_k", "--latency 1e12", "the run would last more than 30 years"),
        ("fair_k", "--latency uniform:3", "cannot read the latency uniform:3"),
        ("fair_k", "--latency nowhere.txt", "cannot read the latency file nowhere.txt: No such file"),
        ("fair_k", "--requests 0", "requests must be at least 1"),
        ("fair_k", "--requests 3 --warmup 3", "warmup must be 0..2"),
        ("fair_k", "--workload full", "workload must be closed, open or rounds, not 'full'"),
        ("fair_k", "--askers 3", "--askers needs --workload rounds"),
        ("fair_k", "--workload rounds --askers 101", "askers must be 1..100"),
        ("fair_k", "--give-up 0.5", "cannot read --give-up 0.5: write it as SHARE:SECONDS"),
        ("fair_k", "--give-up 2:10", "give_up is SHARE:SECONDS with a share between 0 and 1"),
        ("fair_k", "--faults flood:3", "unknown fault 'flood': choose from crash, "),
        ("fair_k", "--faults crash:3", "cannot read crash:3: write it as crash:3@100"),
        ("fair_k", "--faults loss:2", "loss must be a share between 0 and 1, not '2'"),
        ("fair_k", "--faults crash:100@5", "there is no node 100: nodes are 0..99"),
        (
            "fair_k",
            "--option tree=random",
            "cannot use --option tree=random: the options of fair_k are parent_on_child=true",
        ),
        ("fair_k", "--option parent_on_child=x", "cannot use --option parent_on_child=x: write parent_on_child=true|"),
        ("fair_k", "--option parent_on_child", "cannot use --option parent_on_child: the options of fair_k are"),
        ("bv95", "--option tree=oak", "cannot use --option tree=oak: write tree=random|round_robin|"),
        ("leased", "--option lease=long", "cannot use --option lease=long: write lease=10s"),
        ("sigma", "--option retry=5s", "cannot use --option retry=5s: write retry=80"),
        ("sigma", f"--option retry={'9' * 5000}", "cannot use --option retry=999"),
        ("leased", f"--option lease={'9' * 400}s", "cannot use --option lease=999"),
        ("leased", "--option lease=1_0", "cannot use --option lease=1_0: write lease=10s"),
        (
            "leased",
            "--option channel_resend=1s",
            "cannot use --option channel_resend=1s: the options of leased are lease=10s;",
        ),
        ("raymond", "--option x=1", "cannot use --option x=1: raymond has no options"),
        ("fair_k", "--seed -1", "the seed must be a whole number, 0 or more, not -1"),
        ("fair_k", "--seed -1 --trials 3", "the seed must be a whole number, 0 or more, not -1"),
        ("fair_k", "--trials 0", "--trials must be at least 1"),
        ("fair_k", "--trials 2 --workers 0", "--workers must be at least 1"),
        ("fair_k", "--trials 2 --latency nowhere.txt", "cannot read the latency file nowhere.txt: No such file"),
        ("fair_k", "--trials 2 --journal x", "--journal records a single run"),
        ("fair_k", "--journal no/where.ndjson", "cannot write the journal no/where.ndjson: No such file"),
        ("fair_k", "--journal .", "cannot write the journal .: Is a directory"),
    ],
)
def test_sim_rejects_bad_options_in_one_line(
    fairgate: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: str, options: str, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = fairgate("sim", protocol, *options.split())
    assert (code, out) == (2, "")
    assert err.startswith(f"fairgate: {said}")
    assert err.count("\n") == 1


@pytest.mark.parametrize("command", [["swarm", "fair_k"], ["torture"]])
def test_other_random_runs_reject_a_negative_seed(fairgate: Run, command: list[str]) -> None:
    code, out, err = fairgate(*command, "--seed", "-1")
    assert (code, out, err) == (2, "", "fairgate: the seed must be a whole number, 0 or more, not -1\n")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"0,5\n5,0\n", "has 2 nodes, but the run has 3"),
        (b"0,5,x\n5,0,5\n5,5,0\n", "row 1 is not a row of latencies"),
        (b"\x1f\x8bno gzip at all", "cannot read the latency file"),
    ],
)
def test_sim_rejects_a_bad_latency_matrix(fairgate: Run, tmp_path: Path, text: bytes, said: str) -> None:
    path = tmp_path / "matrix"
    path.write_bytes(text)
    code, out, err = fairgate("sim", "fair_k", "--nodes", "3", "--latency", str(path))
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert said in err


def test_an_option_rejected_by_the_constructor_is_bad_input(fairgate: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The value passes the checks of the command line, but the protocol rejects it."""
    monkeypatch.setattr(sim, "read_options", lambda *_: {"tree": "oak"})
    code, _, err = fairgate("sim", "bv95")
    assert code == 2
    assert err.startswith("fairgate: bv95: tree must be one of random,")
