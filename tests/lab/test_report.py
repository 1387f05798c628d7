"""The report is one page that needs nothing else, and says what was measured and how to repeat it."""

from __future__ import annotations

import csv
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest

from fairgate.errors import BadInput
from fairgate.lab.catalogue import find
from fairgate.lab.experiment import FAILS, PARTLY, Bench, Claim, Outcome
from fairgate.lab.outcomes import About, finished, save, saved
from fairgate.lab.plot import Picture, shares, svg_of
from fairgate.lab.report import Section, claims_table, ledger_link, write_report
from tests.tidy.imports import PACKAGE

pytest.importorskip("matplotlib")

ROOT = PACKAGE.parents[1]
ABOUT = About("quick", 7, None)
LINES = {"fair_k": [(1.0, 2.0, 0.1), (10.0, 3.0, 0.2)], "a <b> & c": [(1.0, 4.0, 0.0), (10.0, 20_000.0, 0.0)]}
PICTURE = Picture("title", "x, s", "y", LINES, log_x=True, levels={"law": 3.0})
CLAIM = Claim("A is < B.", "4, figure 3", "370 s", "371 ± 2 s", PARTLY, "Because <it> is.", "fair_k.md#holes")
ROW = {"protocol": "fair_k", "wait": 1.5, "usage": [[0, 1]]}
OUTCOME = Outcome([ROW], [PICTURE, PICTURE], [CLAIM], ["etcd was <not> measured"])


def report(folder: Path, about: About = ABOUT) -> str:
    return write_report(folder, [Section(finished(find("FK.3"), about, OUTCOME), folder)]).read_text()


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
    assert "fairgate lab run FK.3 --quick --seed 7" in text
    assert "lab.run(&quot;FK.3&quot;, size=&quot;quick&quot;, seed=7)" in text
    assert "etcd was &lt;not&gt; measured" in text
    assert "<b>" not in text


def test_only_claims_of_a_paper_have_a_column_for_its_value() -> None:
    table = claims_table([CLAIM])
    assert table.count("<th>") == table.count("<td") == 5
    own = claims_table([replace(CLAIM, paper="")])
    assert own.count("<th>") == own.count("<td") == 4
    assert "<th>paper</th>" not in own


def test_a_latency_file_is_named(tmp_path: Path) -> None:
    text = report(tmp_path, About("paper", 1, "/data/king.csv"))
    assert "--paper --seed 1 --latency /data/king.csv" in text
    assert "read from /data/king.csv" in text


def test_the_data_lies_beside_the_page(tmp_path: Path) -> None:
    save(tmp_path, finished(find("FK.3"), ABOUT, OUTCOME))
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
    text = write_report(tmp_path, [Section(finished(find("FK.2"), ABOUT, outcome), tmp_path)]).read_text()
    assert f"✗ {FAILS}" in text


def test_each_claim_links_to_its_entry_in_the_ledger(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (link,) = re.findall(r'href="([^"]*fair_k.md#holes)"', report(tmp_path / "deep"))
    assert (tmp_path / "deep" / link.partition("#")[0]).resolve() == ROOT / "papers" / "fair_k.md"


def test_outside_of_a_checkout_the_entry_is_named() -> None:
    assert ledger_link(CLAIM, None) == '<span class="soft">papers/fair_k.md</span>'


def test_outcomes_are_read_as_they_were_saved(tmp_path: Path) -> None:
    one, other = finished(find("FK.3"), ABOUT, OUTCOME), finished(find("SG.2"), About("paper", 7, None), OUTCOME)
    save(tmp_path, one)
    save(tmp_path, other)
    (found,) = saved(tmp_path, ABOUT)
    assert Section(found, tmp_path).html == Section(one, tmp_path).html
    assert (found.about, found.made) == (one.about, one.made)
    assert [each.experiment.id for each in saved(tmp_path)] == ["FK.3", "SG.2"]


def test_an_outcome_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "FK.3.json").write_text("{}")
    with pytest.raises(BadInput, match=r"run FK\.3 again"):
        saved(tmp_path)


def test_sections_that_were_made_differently_say_so(tmp_path: Path) -> None:
    first = finished(find("FK.3"), ABOUT, OUTCOME)
    later = replace(first, experiment=find("SG.2"), made=replace(first.made, day="1999-12-31"))
    text = write_report(tmp_path, [Section(first, tmp_path), Section(later, tmp_path)]).read_text()
    assert "SG.2: fairgate" in text
    assert "1999-12-31" in text
