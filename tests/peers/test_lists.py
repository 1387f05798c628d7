"""The lists of what applies cannot rot: every change of an outcome is a complaint."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.peers import lists
from tests.peers.lists import FAILED, NO_GATE, NOT_ENDED, NOT_RUN, PASSED, Suite, judge, listed_as, load

SUITE = Suite(
    "example",
    files=["test_example.py"],
    seconds=1.0,
    not_applicable={"TestLock.test_nested": "it nests", "test_repr": "it reads a text"},
    not_run={"TestEvent": "there are none"},
)
AS_LISTED = {
    "TestLock.test_simple": PASSED,
    "TestLock.test_nested": f"{FAILED}: it waited",
    "test_repr[a]": FAILED,
    "test_repr[b]": FAILED,
    "TestEvent.test_set": NOT_RUN,
}


def test_outcomes_as_listed() -> None:
    verdict = judge(SUITE, AS_LISTED)
    assert verdict.complaints == []
    assert verdict.reasons == {"it nests": 1, "it reads a text": 2, "there are none": 1}
    assert verdict.line("example") == "example: 1 passed, 4 not applicable"


@pytest.mark.parametrize(
    ("test", "outcome", "complaint"),
    [
        ("TestLock.test_simple", FAILED, "TestLock.test_simple: failed"),
        ("TestLock.test_simple", NOT_ENDED, "TestLock.test_simple: it did not end"),
        ("TestLock.test_simple", NO_GATE, "TestLock.test_simple passes without opening a gate: list it in not_run"),
        ("TestLock.test_nested", PASSED, "TestLock.test_nested passes: remove it from not_applicable"),
        ("test_repr[b]", NO_GATE, "test_repr[b] passes: remove it from not_applicable"),
        ("TestLock.test_new", FAILED, "TestLock.test_new: failed"),
    ],
)
def test_another_outcome_is_a_complaint(test: str, outcome: str, complaint: str) -> None:
    verdict = judge(SUITE, AS_LISTED | {test: outcome})
    assert verdict.complaints == [complaint]
    assert verdict.line("example").endswith(", 1 NOT AS LISTED")


def test_a_listed_test_that_no_longer_exists_is_a_complaint() -> None:
    gone = {name: outcome for name, outcome in AS_LISTED.items() if name != "TestEvent.test_set"}
    assert judge(SUITE, gone).complaints == ["TestEvent is listed, but there is no such test"]


@pytest.mark.parametrize(
    ("test", "name"),
    [
        ("test_a", "test_a"),
        ("test_a[x]", "test_a"),
        ("test_a[y.z]", "test_a[y.z]"),
        ("TestA.test_b[x]", "TestA"),
        ("TestA.test_c[x]", "TestA.test_c"),
        ("test_b", ""),
        ("test_ab", ""),
    ],
)
def test_the_most_specific_entry_covers_a_test(test: str, name: str) -> None:
    assert listed_as(test, ["test_a", "test_a[y.z]", "TestA", "TestA.test_c"]) == name


@pytest.mark.parametrize("path", sorted(lists.FOLDER.glob("*.toml")), ids=lambda path: path.stem)
def test_every_list_can_be_read(path: Path) -> None:
    suite = load(path)
    assert suite.standard or suite.packages
    assert all(len(sha256) == 64 for sha256 in suite.packages.values())
    assert (Path(lists.__file__).parent / "adapters" / f"{suite.adapter}.py").exists()
    assert all((suite.not_applicable | suite.not_run).values())


def test_a_test_that_is_listed_twice_is_refused(tmp_path: Path) -> None:
    entry = '[[{}]]\nreason = "it nests"\ntests = ["test_a"]\n'
    path = tmp_path / "example.toml"
    path.write_text("files = []\nseconds = 1\n" + entry.format("not_run") + entry.format("not_applicable"))
    with pytest.raises(AssertionError, match="lists a test twice: test_a"):
        load(path)
