"""What applies of a suite, read from suites/NAME.toml, and whether its outcomes are as listed.

A list names tests (`test_x`, with all its parameters, or `test_x[a]`), methods (`TestX.test_y`) or classes (`TestX`):

    [[not_applicable]]      run all the same, and must fail or be skipped
    [[not_run]]             not about what fairgate has, or would wait forever; must exist

Every other test must pass, and must have opened a gate. So a list cannot rot.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "suites"
PASSED, FAILED, NO_GATE, NOT_RUN, NOT_ENDED = (
    "passed",
    "failed",
    "passed without a gate",
    "not run",
    "it did not end",
)


@dataclass(frozen=True)
class Suite:
    """One project's tests of its locks.

    Attributes:
        packages: Source distributions by name and version, with their SHA-256; the first one has the tests.
        standard: Instead, that the tests are those of this interpreter, in its `test` package.
        files: The tests, below the source distribution.
        beside: Other files that they import.
        path: Folders of the source distributions to import from.
        adapter: The name of its adapter, if it is not that of the suite.
        children: Whether programs that the tests start need the adapter too.
        seconds: How long all of it may take.
        not_applicable: Reasons, by the name that is listed.
        not_run: Likewise.
    """

    name: str
    files: list[str]
    seconds: float
    packages: dict[str, str] = field(default_factory=dict)
    standard: bool = False
    beside: list[str] = field(default_factory=list)
    path: list[str] = field(default_factory=list)
    adapter: str = ""
    children: bool = False
    not_applicable: dict[str, str] = field(default_factory=dict)
    not_run: dict[str, str] = field(default_factory=dict)


def load(path: Path) -> Suite:
    data: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    lists: dict[str, Any] = {key: by_name(data.pop(key, [])) for key in ("not_applicable", "not_run")}
    twice = lists["not_applicable"].keys() & lists["not_run"].keys()
    assert not twice, f"{path.name} lists a test twice: {', '.join(twice)}"
    return Suite(path.stem, **{"adapter": path.stem, **data}, **lists)


def by_name(entries: list[dict[str, Any]]) -> dict[str, str]:
    return {test: entry["reason"] for entry in entries for test in entry["tests"]}


def load_all() -> list[Suite]:
    return [load(path) for path in sorted(FOLDER.glob("*.toml"))]


def listed_as(test: str, names: Iterable[str]) -> str:
    """The entry that a test belongs to: the longest name that covers it. Empty if there is none."""
    plain = test.partition("[")[0]
    covering = {test, plain, plain.partition(".")[0]}
    return max(covering & set(names), key=len, default="")


@dataclass(frozen=True)
class Verdict:
    passed: int
    reasons: dict[str, int]  # how many tests do not apply, by reason
    complaints: list[str]

    def line(self, suite: str) -> str:
        left = sum(self.reasons.values())
        return f"{suite}: {self.passed} passed, {left} not applicable" + (
            f", {len(self.complaints)} NOT AS LISTED" if self.complaints else ""
        )


def judge(suite: Suite, outcomes: Mapping[str, str]) -> Verdict:
    """Compare what happened with the list."""
    listed = suite.not_applicable | suite.not_run
    found: dict[str, list[str]] = {name: [] for name in listed}
    reasons: dict[str, int] = {}
    complaints = []
    passed = 0
    for test, outcome in outcomes.items():
        name = listed_as(test, listed)
        if name:
            found[name].append(test)
            reasons[listed[name]] = reasons.get(listed[name], 0) + 1
            if name in suite.not_applicable and outcome in (PASSED, NO_GATE):
                complaints.append(f"{test} passes: remove it from not_applicable")
        elif outcome == PASSED:
            passed += 1
        elif outcome == NO_GATE:
            complaints.append(f"{test} passes without opening a gate: list it in not_run")
        else:
            complaints.append(f"{test}: {outcome}")
    complaints += [f"{name} is listed, but there is no such test" for name in found if not found[name]]
    return Verdict(passed, reasons, complaints)
