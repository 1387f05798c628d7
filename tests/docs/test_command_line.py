"""docs/command-line.md lists every option of every command. `REWRITE=1 pytest tests/docs` brings it up to date."""

from __future__ import annotations

import os
from pathlib import Path

from tests.docs.command_line import reference

PAGE = Path(__file__).parent.parent.parent / "docs" / "command-line.md"
BEGINS = "<!-- Made from the parsers: REWRITE=1 pytest tests/docs -->\n"


def test_the_reference_is_up_to_date() -> None:
    before, marker, old = PAGE.read_text(encoding="utf-8").partition(BEGINS)
    assert marker, f"{PAGE.name} has no line {BEGINS!r}"
    new = f"\n{reference()}".rstrip("\n") + "\n"
    if os.environ.get("REWRITE"):
        PAGE.write_text(before + marker + new, encoding="utf-8")
    else:
        assert old == new
