"""The report is one page that needs nothing else, and says what was measured and how to repeat it."""

from __future__ import annotations

import csv
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from fairgate.lab.catalogue import find
from fairgate.lab.experiment import FAILS, PARTLY, Bench, Claim, Outcome
from fairgate.lab.plot import Picture, shares, svg_of
from fairgate.lab.report import About, Section, write_data, write_report

pytest.importorskip("matplotlib")

ABOUT = About("quick", 7, None)
LINES = {"fair_k": [(1.0, 2.0, 0.1), (10.0, 3.0, 0.2)], "a <b> & c": [(1.0, 4.0, 0.0), (10.0, 20_000.0, 0.0)]}
PICTURE = Picture("title", "x, s", "y", LINES, log_x=True, levels={"law": 3.0})
CLAIM = Claim("A is < B.", "4, figure 3", "370 s", "371 ± 2 s", PARTLY, "Because <it> is.", "fair_k.md#holes")
OUTCOME = Outcome([{"protocol": "fair_k", "wait": 1.5, "usage": [[0, 1]]}], [PICTURE, PICTURE], [CLAIM])


def report(folder: Path, about: About = ABOUT) -> str:
    return write_report(folder, about, [Section(find("FK.3"), OUTCOME, about)]).read_text()


def test_no_request_leaves_the_page(tmp_path: Path) -> None:
    text = report(tmp_path)
    assert "<script" not in text
    assert "@import" not in text
    loaded = [part for part in text.split('"') if part.startswith(("http:", "https:", "//"))]
    assert all(part.startswith(("http://www.w3.org/", "http://purl.org/", "http://creativecommons")) for part in loaded)
    assert 'href="FK.3.csv"' in text  # beside the page


def test_the_page_has_figures_claims_and_how_to_repeat_them(tmp_path: Path) -> None:
    text = report(tmp_path)
    assert text.count("<svg") == 2
    assert "A is &lt; B." in text
    assert "371 ± 2 s" in text
    assert PARTLY in text
    assert "papers/fair_k.md" in text
    assert "fairgate lab run FK.3 --quick --seed 7" in text
    assert "run(&quot;FK.3&quot;, size=&quot;quick&quot;, seed=7)" in text
    assert "<b>" not in text


def test_a_latency_file_is_named(tmp_path: Path) -> None:
    text = report(tmp_path, About("paper", 1, "/data/king.csv"))
    assert "--paper --seed 1 --latency /data/king.csv" in text
    assert "read from /data/king.csv" in text


def test_the_data_lies_beside_the_page(tmp_path: Path) -> None:
    write_data(tmp_path, find("FK.3"), OUTCOME)
    with (tmp_path / "FK.3.csv").open() as file:
        assert list(csv.DictReader(file)) == [{"protocol": "fair_k", "wait": "1.5"}]
    with (tmp_path / "FK.3.points.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 8
    assert rows[1] == {"picture": "1", "line": "fair_k", "x, s": "10.0", "y": "3.0", "margin": "0.2"}


def test_figures_take_the_colours_of_the_page_and_have_ids_of_their_own() -> None:
    first, second = (svg_of(PICTURE, name) for name in ("one", "two"))
    assert "currentColor" in first
    assert "20,000" in first
    marks = [{part.get("id") for part in ET.fromstring(svg).iter() if "clip" in part.tag} for svg in (first, second)]
    assert not marks[0] & marks[1]


def test_a_distribution_ends_at_the_whole() -> None:
    assert shares([3.0, 1.0]) == [(1.0, 0.5, 0.0), (3.0, 1.0, 0.0)]


def test_a_claim_that_does_not_hold_is_shown_as_such(tmp_path: Path) -> None:
    outcome = find("FK.2").run(Bench("tiny"))
    text = write_report(tmp_path, ABOUT, [Section(find("FK.2"), outcome, ABOUT)]).read_text()
    assert f"✗ {FAILS}" in text
