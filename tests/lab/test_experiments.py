"""Every experiment in a tiny size: its code runs, and each claim has the verdict that larger runs have."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from fairgate.errors import BadInput
from fairgate.lab.catalogue import all_experiments, chosen, find, run
from fairgate.lab.coordinator_order import by_places, shares_early
from fairgate.lab.experiment import FAILS, HOLDS, PARTLY, Bench, Outcome
from fairgate.lab.live import most_inside
from fairgate.sim.config import Config
from tests.tidy.imports import PACKAGE

IDS = [each.id for each in all_experiments()]
ROOT = PACKAGE.parents[1]

# The verdicts of each experiment's claims, in order. None: it depends on the length of the run (BV95's longest waits),
# or on the machine (live gates).
VERDICTS: dict[str, list[str | None]] = {
    "FK.2": [HOLDS, FAILS, HOLDS, HOLDS],
    "FK.3": [PARTLY, None, PARTLY],
    "FK.4": [None, None, None],
    "FK.5": [HOLDS],
    "FK.6": [HOLDS, PARTLY],
    "FK.order": [FAILS],
    "SG.2": [HOLDS],
    "SG.3": [HOLDS, HOLDS],
    "SG.7": [HOLDS, HOLDS, HOLDS],
    "SG.8": [HOLDS, PARTLY],
    "SG.4n": [PARTLY],
    "EE.3a": [PARTLY, PARTLY],
    "EE.3b": [PARTLY],
    "EE.4a": [PARTLY, HOLDS],
    "EE.4b": [PARTLY, FAILS],
    "EE.4c": [PARTLY, HOLDS],
    "EE.5": [PARTLY, None],
    "RF.4": [PARTLY, PARTLY, HOLDS],
    "RF.8.2": [HOLDS, HOLDS, PARTLY],
    "X.cost": [HOLDS, HOLDS, HOLDS, HOLDS],
    "X.fair": [HOLDS, HOLDS, HOLDS],
    "X.crash": [HOLDS, HOLDS],
    "X.backups": [HOLDS, HOLDS, HOLDS],
    "X.live": [HOLDS, None, None],
}


@cache
def outcome(id: str) -> Outcome:
    return run(id, size="tiny")


@pytest.mark.parametrize("id", IDS)
def test_an_experiment_has_figures_and_claims_with_the_verdicts_of_larger_runs(id: str) -> None:
    found = [claim.verdict for claim in outcome(id).claims]
    wanted = [verdict or seen for verdict, seen in zip(VERDICTS[id], found, strict=True)]
    assert found == wanted, [claim.ours for claim in outcome(id).claims]
    # There is something to draw, and every claim has its entry in the ledger.
    assert all(points for picture in outcome(id).pictures for points in picture.series.values())
    assert outcome(id).pictures
    assert outcome(id).rows
    for claim in outcome(id).claims:
        assert bool(claim.paper) == bool(claim.section) == (not id.startswith("X."))
        assert claim.ours
        assert claim.why
        page, _, heading = claim.ledger.partition("#")
        assert not heading or heading in anchors(ROOT / "papers" / page), claim.ledger


def anchors(page: Path) -> set[str]:
    """The headings of a page as the site names them."""
    lines = [line.lstrip("#").strip() for line in page.read_text().splitlines() if line.startswith("#")]
    kept = ["".join(c for c in line.lower() if c.isalnum() or c in " -_") for line in lines]
    return {line.replace(" ", "-") for line in kept}


def test_only_one_queue_keeps_the_order_of_the_coordinators() -> None:
    config = Config("fair_k", nodes=20, k=3, latency="1", requests=10)
    shares = shares_early(config)
    assert sum(shares) == pytest.approx(1)
    assert shares[0] < 1 < len(shares) <= config.k
    assert shares_early(replace(config, k=1)) == [1.0]


def test_runs_with_fewer_places_count_in_the_mean_share() -> None:
    rows = [{"most_places_early": 0, "shares": [1.0]}, {"most_places_early": 1, "shares": [0.5, 0.5]}]
    assert [(places, share) for places, share, _ in by_places(rows)] == [(0.0, 0.75), (1.0, 0.25)]


def test_fair_k_spreads_its_waits_less_than_bv95() -> None:
    """The direction of FK's figure 4, whose values take longer runs."""
    rows = outcome("FK.4").rows
    fair, other = ([row["spread"] for row in rows if row["protocol"] == name] for name in ("fair_k", "bv95"))
    assert 10 * max(fair) < min(other)


def test_the_verdict_follows_the_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    """A claim is not a constant: a measurement that contradicts it changes the verdict."""
    real = Bench.sweep

    def slower(self: Bench, *protocols: str, **grid: object) -> list[dict[str, object]]:
        return [row | {"wait_mean": row["wait_mean"] * 1.1} for row in real(self, *protocols, **grid)]  # type: ignore[arg-type]

    monkeypatch.setattr(Bench, "sweep", slower)
    assert run("FK.2", size="tiny").claims[0].verdict == FAILS


def test_the_numbers_do_not_depend_on_the_workers(tmp_path: Path) -> None:
    alone, shared = (find("RF.8.2").run(Bench("tiny", workers=workers)) for workers in (1, 2))
    assert alone.rows == shared.rows
    kept = find("RF.8.2").run(Bench("tiny", cache=tmp_path / "cache"))
    again = find("RF.8.2").run(Bench("tiny", cache=tmp_path / "cache"))
    assert kept.rows == again.rows == alone.rows


@pytest.mark.parametrize("way", ["map", "one_by_one"])
def test_what_is_no_simulation_is_not_done_twice_either(way: str, tmp_path: Path) -> None:
    done: list[int] = []

    def squared(number: int) -> list[int]:
        done.append(number)
        if len(done) == 3:
            raise KeyboardInterrupt
        return [number * number]

    do = getattr(Bench("tiny", cache=tmp_path / "cache"), way)
    with pytest.raises(KeyboardInterrupt):
        do(squared, [1, 2, 3])
    assert do(squared, [1, 2, 3]) == [[1], [4], [9]]
    assert do(squared, [3, 1]) == [[9], [1]]
    assert done == [1, 2, 3, 3]


def test_another_seed_gives_other_numbers() -> None:
    assert run("RF.8.2", size="tiny", seed=7).rows != outcome("RF.8.2").rows


def test_ids_can_be_written_in_any_case_and_name_each_experiment_once() -> None:
    assert [each.id for each in chosen(["fk.3", "FK.3", "ee.5"])] == ["FK.3", "EE.5"]
    assert [each.id for each in chosen(["all"])] == IDS


@pytest.mark.parametrize(("id", "said"), [("FK.33", "did you mean FK.3"), ("nope", "fairgate lab list")])
def test_an_unknown_experiment_is_refused_with_the_nearest_names(id: str, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        find(id)


def test_an_unknown_size_is_refused() -> None:
    with pytest.raises(BadInput, match="the size must be"):
        run("SG.2", size="huge")


def test_a_negative_seed_is_refused() -> None:
    with pytest.raises(BadInput, match="the seed must be a whole number, 0 or more"):
        run("SG.2", seed=-1)


def test_a_lock_that_lets_two_in_is_named() -> None:
    assert most_inside({"fairgate": 1, "flock": 1}) == "at most 1 inside"
    assert most_inside({"fairgate": 1, "GNU sem": 2, "flock": 1}) == "at most 1 inside (GNU sem: 2)"
