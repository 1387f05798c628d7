"""Phrases that readers stumble over. Each has a plain replacement; CONTRIBUTING.md asks for plain English."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PLAIN = {
    r"\bfor ever\b": "forever",
    r"\b(messages|hops|events|entries|instructions) an? (entry|node|message|host|second)\b": "per entry, per second",
    r"(^|[.:]) +Who(ever)? [a-z]+s\b": "a peer that ..., anyone who ...",
    r"\bis nothing[.,;)]": "is a no-op, is not ...",
    r"\bsaid in words\b": "described",
    r"\b[Ww]anted were\b": "the target was",
}
CHECKED = (".py", ".pyx", ".pxd", ".md", ".txt", ".yml", ".toml")


def files() -> list[Path]:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [ROOT / name for name in listed.splitlines() if name.endswith(CHECKED) and ROOT / name != Path(__file__)]


@pytest.mark.parametrize("phrase", PLAIN)
def test_the_phrase_is_not_used(phrase: str) -> None:
    pattern = re.compile(phrase)
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in files()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if pattern.search(line)
    ]
    assert found == [], f"write {PLAIN[phrase]!r} instead"


@pytest.mark.parametrize(
    "riddle", ["nodes [1] may wait for ever", "messages an entry", "It leaves. Who waits is told.", "that is nothing."]
)
def test_a_riddle_is_found(riddle: str) -> None:
    assert any(re.search(phrase, riddle) for phrase in PLAIN)
