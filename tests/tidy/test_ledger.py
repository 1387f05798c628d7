"""References in papers/*.md: the tests and files they name exist, and every recorded hole is referenced."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAPERS = sorted(ROOT.glob("papers/*.md"))
KEPT = sorted([*ROOT.glob("papers/holes/*"), *ROOT.glob("tests/scenarios/holes/*")])
PROTOCOLS = {  # paper -> prefix of its labels
    "fair_k": "FK",
    "naimi_trehel": "NT",
    "bv95": "BV",
    "raymond_fd": "RF",
    "srimani_reddy": "SR",
    "raymond_tree": "RT",
}


@pytest.mark.parametrize("paper", PAPERS, ids=lambda paper: paper.stem)
def test_the_tests_and_files_named_in_papers_exist(paper: Path) -> None:
    text = paper.read_text(encoding="utf-8")
    for file, _, name in re.findall(r"`((?:tests|papers)/[\w/]+\.\w+)(::(\w+))?", text):
        assert (ROOT / file).is_file(), file
        assert not name or f"def {name}(" in (ROOT / file).read_text(encoding="utf-8"), f"{file}::{name}"


def test_every_recorded_hole_is_referenced_in_a_paper() -> None:
    ledgers = "".join(paper.read_text(encoding="utf-8") for paper in PAPERS)
    assert KEPT
    assert [file.name for file in KEPT if file.relative_to(ROOT).as_posix() not in ledgers] == []


@pytest.mark.parametrize("paper", PROTOCOLS)
def test_every_label_in_the_code_is_in_its_paper(paper: str) -> None:
    lines = (ROOT / "papers" / f"{paper}.md").read_text(encoding="utf-8")
    labels = set()
    for source in ROOT.glob("src/fairgate/protocols/**/*.py"):
        labels |= set(re.findall(rf"# {PROTOCOLS[paper]}:(\w+)", source.read_text(encoding="utf-8")))
    assert labels
    assert [label for label in sorted(labels) if not re.search(rf"^ *{label} ", lines, re.MULTILINE)] == []
