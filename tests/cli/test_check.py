"""`fairgate check`: its output, the files it writes, the input it rejects, and its exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from fairgate.cli.app import run
from fairgate.cli.check import command as check
from fairgate.cli.check import mutants
from fairgate.mutation.deletions import Deleted
from fairgate.registry import make_node
from fairgate.scenario.run import run_scenario

Said = tuple[int, str, str]
Run = Callable[..., Said]
LITERAL = ("raymond_fd_literal", "--nodes", "2", "--crashes", "1")


@pytest.fixture
def fairgate(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.delenv("COLUMNS", raising=False)

    def do(*arguments: str) -> Said:
        code = run(["check", *arguments])
        return code, *capsys.readouterr()

    return do


def row(out: str, measure: str) -> str:
    """The value in the row of this measure."""
    (line,) = [line for line in out.splitlines() if line.startswith(f"{measure}  ")]
    return line.removeprefix(measure).split()[0]


def test_a_correct_protocol_has_no_violation(fairgate: Run) -> None:
    code, out, err = fairgate("Fair-K", "--k", "2")
    assert (code, err) == (0, "")
    assert out.splitlines()[0].rstrip() == "fair_k: 3 nodes, k = 2, 1 request each, messages in any order"
    found = [row(out, measure) for measure in ("complete", "states", "transitions", "depth", "on cycles")]
    assert found == ["yes", "240", "592", "19", "0"]
    assert out.endswith(
        "\nno violation: at most 2 inside, fences rise, no token is lost or duplicated, nobody is left waiting\n"
    )


def test_json_result_without_a_violation(fairgate: Run) -> None:
    code, out, err = fairgate("fair_k", "--k", "2", "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert (found["complete"], found["states"], found["depth"], found["violations"]) == (True, 240, 19, [])
    assert found["states_per_second"] > 0
    assert found["counterexample"] == []


def test_a_violation_is_drawn_and_written_to_files(fairgate: Run, tmp_path: Path) -> None:
    journal, scenario = tmp_path / "way.ndjson", tmp_path / "way.txt"
    code, out, err = fairgate(*LITERAL, "--journal", str(journal), "--scenario", str(scenario))
    assert (code, err) == (1, "")
    assert row(out, "complete") == "no"
    assert "violation: liveness: nothing moves any more, and nodes [0] wait\n" in out
    assert "Shortest run to this violation, 3 steps:\n" in out
    assert "0 suspects 1 (T); [the detecting node told itself nothing]\n" in out
    assert out.endswith(f"journal written to {journal}\nscenario written to {scenario}\n")
    assert run(["replay", str(journal)]) == 0
    text = scenario.read_text(encoding="utf-8")
    assert run_scenario(text, make_node) == text


def test_json_result_with_a_violation(fairgate: Run, tmp_path: Path) -> None:
    journal = tmp_path / "way.ndjson"
    code, out, _ = fairgate(*LITERAL, "--json", "--journal", str(journal))
    found = json.loads(out)
    assert code == 1
    assert found["violations"] == ["liveness: nothing moves any more, and nodes [0] wait"]
    assert found["counterexample"] == ["acquire 0", "crash 1", "suspect 0 1 T"]
    assert journal.exists()


def test_no_file_is_written_without_a_violation(fairgate: Run, tmp_path: Path) -> None:
    code, out, _ = fairgate("naimi_trehel", "--journal", str(tmp_path / "way.ndjson"))
    assert (code, list(tmp_path.iterdir())) == (0, [])
    assert "no violation" in out


def test_a_search_cut_off_by_depth_is_reported_as_incomplete(fairgate: Run) -> None:
    code, out, _ = fairgate("fair_k", "--depth", "5")
    assert (code, row(out, "complete")) == (0, "no")
    assert "cut off by --depth" in out
    assert "no violation in runs of up to 5 steps; there is more to explore" in out
    assert json.loads(fairgate("fair_k", "--depth", "5", "--json")[1])["complete"] is False


def test_clock_skew_breaks_a_lease(fairgate: Run) -> None:
    clocks = ("leased", "--nodes", "2", "--option", "lease=3s", "--ticks", "5")
    code, out, _ = fairgate(*clocks)
    assert (code, row(out, "states")) == (0, "2,457")
    assert "5 ticks" in out.splitlines()[0]
    assert "nobody is left waiting before the clocks end" in " ".join(out.split())
    code, out, _ = fairgate(*clocks, "--skew", "1")
    assert code == 1
    assert "violation: k: 2 inside, k is 1 (node 1 came last)\n" in out


def test_ctrl_c_reports_what_was_explored_so_far(fairgate: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def impatient(title: str) -> Iterator[Any]:
        def told(states: int, depth: int, queue: int) -> None:
            raise KeyboardInterrupt

        yield told

    monkeypatch.setattr(check, "exploring", impatient)
    monkeypatch.setattr("fairgate.check.explore.SLICE", 100)
    code, out, _ = fairgate("fair_k", "--requests", "2")
    assert (code, row(out, "complete")) == (130, "no")
    assert "no violation until it was interrupted" in out


REFUSED = {
    "unheard_of": "there is no protocol",
    "leased": "depends on time: set how far the clocks advance, for example --ticks 5",
    "leased --ticks 5 --option drift=0": "drift must be more than 0 to be explored",
    "fair_k --ticks 5": "--ticks, --skew and --rates are only for protocols that use the clock",
    "fair_k --k 4": "k must be 1..3",
    "maekawa --k 2": "use k=1",
    "fair_k --nodes 0": "nodes must be at least 1",
    "fair_k --nodes 31": "nodes must be at most 30",
    "fair_k --network wet": "network must be one of",
    "fair_k --losses 2": "--losses needs --network lossy",
    "fair_k --network lossy --dups 2": "--dups needs --network dup",
    "fair_k --crashes 3": "crashes must be below",
    "fair_k --cancels -1": "--cancels must be 0 or more",
    "raymond --symmetry": "does not declare its peers interchangeable",
    "fair_k --workers 0": "--workers must be at least 1",
    "fair_k --depth 0": "--depth must be at least 1",
    "fair_k --option tree=static": "cannot use --option",
    "fair_k --journal missing/way.ndjson": "cannot write missing/way.ndjson",
    "fair_k --resets 1 --scenario way.txt": "a scenario has no resets",
}


@pytest.mark.parametrize("words", REFUSED)
def test_bad_input_is_rejected_in_one_line(
    fairgate: Run, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, _, err = fairgate(*words.split())
    assert code == 2
    assert REFUSED[words] in err
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_survivor_without_a_reason_names_the_file_for_it(fairgate: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    deleted = Deleted("naimi_trehel", "on_request", 7, "self.next = m.r", "")
    monkeypatch.setattr(mutants, "delete_all", lambda *_: iter([deleted]))
    code, out, _ = fairgate("naimi_trehel", "--mutants")
    assert code == 1
    assert any(line.split()[-2:] == ["NOT", "EXPLAINED"] for line in out.splitlines())
    assert out.splitlines()[-1].startswith("NOT EXPLAINED: ")
    assert "src/fairgate/mutation/survivors.py" in out.splitlines()[-1]
