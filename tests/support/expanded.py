"""What must hold of an expanded module (tools/expand.py). Each check answers one line for each thing that is wrong."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import fairgate
from fairgate.core.declare import merged_fields
from fairgate.core.message import MAKERS
from fairgate.mutation.deletions import load_mutant
from fairgate.registry import PROTOCOLS
from fairgate.sim.config import Config
from fairgate.sim.run import simulate

SRC = Path(fairgate.__file__).parents[1]
ALONE = {  # protocols whose whole code is in one module
    "fair_k": "FairK",
    "fair_k_bounded": "FairKBounded",
    "naimi_trehel": "NaimiTrehel",
    "bv95": "BV95",
    "raymond": "Raymond",
    "suzuki_kasami": "SuzukiKasami",
    "maekawa": "Maekawa",
    "leased": "Leased",
}


@cache
def project(expand: ModuleType) -> Any:
    return expand.Project(SRC)


def expanded(expand: ModuleType, name: str) -> Any:
    return expand.Expanded(project(expand), name)


def functions(tree: ast.Module) -> set[tuple[int, str]]:
    return {(one.lineno, one.name) for one in ast.walk(tree) if isinstance(one, ast.FunctionDef)}


def statements(tree: ast.Module) -> set[tuple[int, type]]:
    """Inside of functions: where they are, and what kind they are."""
    found = set()
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            found |= {(one.lineno, type(one)) for one in ast.walk(function) if isinstance(one, ast.stmt)}
    return found


def moved_lines(expand: ModuleType, name: str) -> list[str]:
    """A traceback must name the line of the source."""
    before = ast.parse(project(expand).source_of(name).read_text())
    after = ast.parse(expanded(expand, name).py())
    lost = sorted(functions(before) - functions(after)) + sorted(map(str, statements(before) - statements(after)))
    return [f"{name}: {one} is not where it was" for one in lost]


def outcome(protocol: str, options: dict[str, Any]) -> Any:
    k = 2 if PROTOCOLS[protocol].about.many else 1
    config = Config(protocol, nodes=7, k=k, requests=30, cs=0.5, seed=3, latency="uniform:0.1,2", options=options)
    result = simulate(config)
    return result.entries, result.messages, result.wait_mean, result.wait_max, result.violations, result.broken


def other_outcomes(expand: ModuleType, protocol: str) -> list[str]:
    """The expanded text is still Python: run as such, it must do what the source does."""
    module = load_mutant(expanded(expand, f"fairgate.protocols.{protocol}").py(), "expanded")
    original = PROTOCOLS[protocol]
    wanted = outcome(protocol, {})
    PROTOCOLS[protocol] = getattr(module, ALONE[protocol])
    try:
        found = outcome(protocol, {})
    finally:
        PROTOCOLS[protocol] = original
    return [] if found == wanted else [f"{protocol}: {found} instead of {wanted}"]


def wrong_text(expand: ModuleType, name: str) -> list[str]:
    """What a reader of the expanded module and its .pxd would object to."""
    module = expanded(expand, name)
    tree, pxd = ast.parse(module.py()), module.pxd_text()
    found = []
    for one in ast.walk(tree):
        if isinstance(one, ast.ClassDef) and one.decorator_list:
            found.append(f"{name}: class {one.name} is still decorated")
        if isinstance(one, ast.FunctionDef) and not one.name.startswith("__"):
            found += [f"{name}: {one.name}: {line}" for line in wrong_in(one, pxd)]
    return found


def wrong_in(function: ast.FunctionDef, pxd: str) -> list[str]:
    found = []
    for one in ast.walk(function):
        if isinstance(one, ast.Return) and one.value is None:
            found.append("returns nothing, and C wants a number")
        if isinstance(one, ast.Constant) and type(one.value) is int and abs(one.value) >= 1 << 31:
            found.append("has a literal that Cython takes for a Python object")
        if isinstance(one, ast.Lambda | ast.GeneratorExp) and f" {function.name}(" in pxd:
            found.append("is a closure, and the .pxd says it is C")
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name) and one.target.id not in typed(function):
            found.append(f"{one.target.id} is annotated and has no C type")
    return found


def typed(function: ast.FunctionDef) -> dict[str, str]:
    """Of its decorator `cython.locals`."""
    return {
        keyword.arg or "": ast.unparse(keyword.value)
        for decorator in function.decorator_list
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "cython.locals"
        for keyword in decorator.keywords
    }


def unreported(expand: ModuleType, protocol: str) -> list[str]:
    """Loaded, it must have told what its decorators would have noted, and must check what it decodes."""
    module = load_mutant(expanded(expand, f"fairgate.protocols.{protocol}").py(), "expanded")
    cls = getattr(module, ALONE[protocol])
    found = [] if merged_fields(cls) == merged_fields(PROTOCOLS[protocol]) else [f"{protocol}: other fields"]
    for tag, kind in module.__dict__["MUTATED_KINDS"].items():
        fields = [field for field in merged_fields(kind) if field.is_state]
        try:
            MAKERS[kind](*["nonsense" for _ in fields])
        except ValueError:
            continue
        if fields:
            found.append(f"{tag}: nonsense was decoded")
    return found
