"""What papers/*.md point to is there, and what is kept to be pointed to is pointed to."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAPERS = sorted(ROOT.glob("papers/*.md"))
KEPT = sorted([*ROOT.glob("papers/holes/*"), *ROOT.glob("tests/scenarios/holes/*")])
PROTOCOLS = {"fair_k": "FK", "naimi_trehel": "NT", "bv95": "BV", "raymond_fd": "RF"}  # paper -> how its labels begin


@pytest.mark.parametrize("paper", PAPERS, ids=lambda paper: paper.stem)
def test_tests_and_files_that_are_named_exist(paper: Path) -> None:
    text = paper.read_text(encoding="utf-8")
    for file, _, name in re.findall(r"`((?:tests|papers)/[\w/]+\.\w+)(::(\w+))?", text):
        assert (ROOT / file).is_file(), file
        assert not name or f"def {name}(" in (ROOT / file).read_text(encoding="utf-8"), f"{file}::{name}"


def test_every_run_that_is_kept_is_in_a_ledger() -> None:
    ledgers = "".join(paper.read_text(encoding="utf-8") for paper in PAPERS)
    assert KEPT
    assert [file.name for file in KEPT if file.relative_to(ROOT).as_posix() not in ledgers] == []


@pytest.mark.parametrize("paper", PROTOCOLS)
def test_every_label_of_the_code_is_in_its_paper(paper: str) -> None:
    lines = (ROOT / "papers" / f"{paper}.md").read_text(encoding="utf-8")
    labels = set()
    for source in ROOT.glob("src/fairgate/protocols/**/*.py"):
        labels |= set(re.findall(rf"# {PROTOCOLS[paper]}:(\w+)", source.read_text(encoding="utf-8")))
    assert labels
    assert [label for label in sorted(labels) if not re.search(rf"^ *{label} ", lines, re.MULTILINE)] == []
