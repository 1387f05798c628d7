"""`fairgate risk`, and the warnings of `fairgate sim` about weak votes."""

import json
import sys
from collections.abc import Callable

import pytest

from fairgate.cli import main

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def fairgate(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["fairgate", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        return int(ended.value.code or 0), out, " ".join(err.split()) + "\n"

    return run


def test_the_setting_of_the_paper(fairgate: Run) -> None:
    code, out, _ = fairgate("risk", "--replicas", "32", "--quorum", "24", "--json")
    assert code == 0
    assert json.loads(out)["probability"] == pytest.approx(5.9e-40, rel=0.01)


def test_a_weak_choice_comes_with_advice(fairgate: Run) -> None:
    code, out, _ = fairgate("risk", "--replicas", "3")
    assert code == 0
    assert "0 memories lost during a stay are harmless" in out
    assert "better: 3 of 4 votes, with which 1 memory is harmless" in out


def test_a_strong_choice_comes_without(fairgate: Run) -> None:
    assert "better" not in fairgate("risk", "--replicas", "4", "--quorum", "3")[1]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [("--replicas 4 --quorum 2", "do not let exactly 1 in"), ("--life 0", "must be times in seconds")],
)
def test_bad_input(fairgate: Run, arguments: str, told: str) -> None:
    code, _, err = fairgate("risk", *arguments.split())
    assert code == 2
    assert told in err
    assert err.count("\n") == 1


def test_a_simulation_with_resets_warns_about_weak_votes(fairgate: Run) -> None:
    small = ["sim", "sigma", "--nodes", "8", "--requests", "2", "--latency", "0.1", "--cs", "1"]
    small += ["--faults", "reset:3@1+1"]
    assert "use --replicas 4 --quorum 3" in fairgate(*small)[2]
    assert "votes" not in fairgate(*small, "--replicas", "4", "--quorum", "3")[2]
    _, _, err = fairgate(*small[:-2], "--replica-life", "1000")
    assert "probability 0.003 per stay" in err
