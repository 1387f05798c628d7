"""The docs pages that `make results` makes from a run of the lab."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fairgate.errors import BadInput
from fairgate.lab.catalogue import find
from fairgate.lab.outcomes import About, finished, save
from tests.lab.test_report import OUTCOME
from tests.tidy.imports import PACKAGE
from tools.results import PAGES, claims_table, write_pages

pytest.importorskip("matplotlib")

ROOT = PACKAGE.parents[1]


def run_of(folder: Path, *ids: str) -> Path:
    folder.mkdir()
    for id in ids:
        save(folder, finished(find(id), About("paper", 7, None), OUTCOME))
    return folder


def test_each_paper_gets_a_page_with_figures_and_claims(tmp_path: Path) -> None:
    pages = write_pages(run_of(tmp_path / "run", "FK.3", "X.live"), tmp_path / "docs")
    assert [page.name for page in pages] == ["fair-k.md", "ours.md"]
    text = pages[0].read_text()
    assert "`fairgate lab run FK.3 --paper --seed 7`" in text
    assert "| A is < B. (4, figure 3) | 370 s | 371 ± 2 s | ≈ holds with this definition |" in text
    assert "(../../papers/fair_k.md#holes)" in text
    assert "etcd was <not> measured" in text
    assert "Made by fairgate" in text
    assert sorted(path.name for path in (tmp_path / "docs").glob("*.svg")) == [
        "FK-3-1.svg", "FK-3-2.svg", "X-live-1.svg", "X-live-2.svg",
    ]  # fmt: skip
    assert all(f"]({path.name})" in text for path in (tmp_path / "docs").glob("FK*.svg"))


def test_claims_of_our_own_have_no_column_for_a_papers_value() -> None:
    own = replace(OUTCOME.claims[0], section="", paper="", ledger="")
    assert claims_table([own])[0] == "| claim | ours | verdict | why |"
    assert claims_table([own])[2] == "| A is < B. | 371 ± 2 s | ≈ holds with this definition | Because <it> is. |"


def test_a_run_of_one_experiment_replaces_only_its_section(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    page = write_pages(run_of(tmp_path / "run", "FK.2", "FK.3"), docs)[0]
    page.write_text(page.read_text().replace("A is < B.", "An old claim."))
    for name in ("FK-2-9.svg", "FK-3-9.svg"):
        (docs / name).write_text("a figure of an earlier run")
    write_pages(run_of(tmp_path / "again", "FK.3"), docs)
    before, after = page.read_text().split("## FK.3")
    assert before.count("An old claim.") == after.count("A is < B.") == 1
    assert "An old claim." not in after
    assert (docs / "FK-2-9.svg").exists()
    assert not (docs / "FK-3-9.svg").exists()


def test_the_same_run_makes_the_same_page(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", "FK.2", "FK.3")
    page = write_pages(run, tmp_path / "docs")[0]
    first = page.read_text()
    assert write_pages(run, tmp_path / "docs")[0].read_text() == first
    part = run_of(tmp_path / "part", "FK.3")
    assert write_pages(part, tmp_path / "docs")[0].read_text() == first
    assert first.index("## FK.2") < first.index("## FK.3")


def test_a_directory_without_outcomes_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="there are no outcomes"):
        write_pages(tmp_path, tmp_path / "docs")


@pytest.mark.parametrize("name", PAGES.values())
def test_the_page_is_in_the_navigation(name: str) -> None:
    assert f"results/{name}.md" in (ROOT / "mkdocs.yml").read_text()
    assert (ROOT / "docs" / "results" / f"{name}.md").is_file()
