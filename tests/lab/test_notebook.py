"""The notebook of examples/ runs as it is, and shows what is stored in it. `make notebook` stores a new run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.tidy.imports import PACKAGE
from tools.notebook import run_cell, run_notebook

pytest.importorskip("matplotlib")

NOTEBOOK = PACKAGE.parents[1] / "examples" / "papers.ipynb"


def shown(cell: dict[str, Any]) -> list[Any]:
    """Its text, and which forms its value has. Figures differ in detail from one version of matplotlib to the next."""
    return [output.get("text") or sorted(output["data"]) for output in cell["outputs"]]


def test_the_notebook_shows_what_a_run_gives() -> None:
    stored = [cell for cell in json.loads(NOTEBOOK.read_text())["cells"] if cell["cell_type"] == "code"]
    made = run_notebook(NOTEBOOK)
    assert [shown(cell) for cell in made] == [shown(cell) for cell in stored]
    assert sum("image/svg+xml" in str(shown(cell)) for cell in made) == 4  # one figure of each paper


def test_a_cell_that_fails_is_noticed(tmp_path: Path) -> None:
    broken = {"cells": [{"cell_type": "code", "source": ["1 / 0"]}]}
    (tmp_path / "broken.ipynb").write_text(json.dumps(broken))
    with pytest.raises(ZeroDivisionError):
        run_notebook(tmp_path / "broken.ipynb")


def test_cells_share_their_names_and_the_last_expression_is_shown() -> None:
    names: dict[str, Any] = {}
    assert run_cell("x = 3", "first", names) is None
    assert run_cell("y = 1\nx + y", "second", names) == 4
