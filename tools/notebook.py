"""Runs the cells of a notebook in one namespace, without Jupyter: `python -m tools.notebook FILE` stores their outputs.

It knows what examples/papers.ipynb needs: printed text, and a last expression that has a plain form or draws itself as
SVG. `make notebook` writes that file anew; tests/lab/test_notebook.py compares the stored text with that of a new run.
"""

import ast
import io
import json
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

Cell = dict[str, Any]


def run_notebook(path: Path) -> list[Cell]:
    """The code cells, each with the outputs of this run."""
    names: dict[str, Any] = {"__name__": "__main__"}
    cells = [cell for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]
    return [
        cell | {"execution_count": number, "outputs": outputs(cell, number, names)}
        for number, cell in enumerate(cells, 1)
    ]


def outputs(cell: Cell, number: int, names: dict[str, Any]) -> list[Cell]:
    printed = io.StringIO()
    with redirect_stdout(printed):
        value = run_cell("".join(cell["source"]), f"cell {number}", names)
    found: list[Cell] = []
    if printed.getvalue():
        found.append({"output_type": "stream", "name": "stdout", "text": lines(printed.getvalue())})
    if value is not None:
        data = {"image/svg+xml": lines(value._repr_svg_())} if hasattr(value, "_repr_svg_") else {}
        data["text/plain"] = lines(repr(value)) if not data else ["<figure>"]
        found.append({"output_type": "execute_result", "execution_count": number, "metadata": {}, "data": data})
    return found


def run_cell(source: str, name: str, names: dict[str, Any]) -> Any:
    """The value of its last statement, if that is an expression."""
    body = ast.parse(source, name).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    exec(compile(ast.Module(body, []), name, "exec"), names)
    return eval(compile(ast.Expression(last.value), name, "eval"), names) if isinstance(last, ast.Expr) else None


def lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def main() -> None:
    path = Path(sys.argv[1])
    notebook = json.loads(path.read_text(encoding="utf-8"))
    made = iter(run_notebook(path))
    notebook["cells"] = [next(made) if cell["cell_type"] == "code" else cell for cell in notebook["cells"]]
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
