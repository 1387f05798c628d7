"""Checks of expanded modules (tools/expand.py). Each check returns one line per mistake that it finds."""

from __future__ import annotations

import ast
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import fairgate
from fairgate.core.declare import merged_fields
from fairgate.core.message import decode
from fairgate.mutation.deletions import load_mutant, speaking
from fairgate.registry import PROTOCOLS
from fairgate.sim.config import Config
from fairgate.sim.run import simulate

SRC = Path(fairgate.__file__).parents[1]
ALONE = {  # protocols that consist of a single module
    "fair_k": "FairK",
    "fair_k_bounded": "FairKBounded",
    "naimi_trehel": "NaimiTrehel",
    "bv95": "BV95",
    "raymond": "Raymond",
    "suzuki_kasami": "SuzukiKasami",
    "srimani_reddy": "SrimaniReddy",
    "raymond_tree": "RaymondTree",
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
    """The statements inside functions: (line, kind)."""
    found = set()
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            found |= {(one.lineno, type(one)) for one in ast.walk(function) if isinstance(one, ast.stmt)}
    return found


def moved_lines(expand: ModuleType, name: str) -> list[str]:
    """Functions and statements on another line than in the source: a traceback must name the source's line."""
    before = ast.parse(project(expand).source_of(name).read_text())
    after = ast.parse(expanded(expand, name).py())
    lost = sorted(functions(before) - functions(after)) + sorted(map(str, statements(before) - statements(after)))
    return [f"{name}: {one} is not where it was" for one in lost]


def outcome(protocol: str, options: dict[str, Any]) -> Any:
    k = 2 if PROTOCOLS[protocol].about.many else 1
    config = Config(protocol, nodes=7, k=k, requests=30, cs=0.5, seed=3, latency="uniform:0.1,2", options=options)
    result = simulate(config)
    return result.entries, result.messages, result.wait_mean, result.wait_max, result.violations, result.broken


def loaded(expand: ModuleType, protocol: str) -> ModuleType:
    """The expanded module, run as Python on top of the expanded module of its base."""
    base = PROTOCOLS[protocol].__bases__[0].__module__
    if not base.startswith("fairgate.protocols."):
        return load_mutant(expanded(expand, f"fairgate.protocols.{protocol}").py(), "expanded")
    original = sys.modules[base]
    sys.modules[base] = loaded(expand, base.rpartition(".")[2])
    try:
        return load_mutant(expanded(expand, f"fairgate.protocols.{protocol}").py(), "expanded")
    finally:
        sys.modules[base] = original


def described(cls: type) -> list[tuple[str, str, tuple[str, ...]]]:
    return [(field.name, field.kind.c, field.kind.marks) for field in merged_fields(cls)]


def other_outcomes(expand: ModuleType, protocol: str) -> list[str]:
    """The expanded text is still Python. Run as such, it must give the same results as the source."""
    module = loaded(expand, protocol)
    original = PROTOCOLS[protocol]
    wanted = outcome(protocol, {})
    PROTOCOLS[protocol] = getattr(module, ALONE[protocol])
    try:
        found = outcome(protocol, {})
    finally:
        PROTOCOLS[protocol] = original
    return [] if found == wanted else [f"{protocol}: {found} instead of {wanted}"]


def wrong_text(expand: ModuleType, name: str) -> list[str]:
    """Decorators that are left, and function bodies that Cython would not compile to C."""
    module = expanded(expand, name)
    tree, pxd = ast.parse(module.py()), module.pxd_text()
    written = functions(ast.parse(project(expand).source_of(name).read_text()))
    found = []
    for one in ast.walk(tree):
        if isinstance(one, ast.ClassDef) and any("dataclass" not in ast.unparse(each) for each in one.decorator_list):
            found.append(f"{name}: class {one.name} is still decorated")
        if isinstance(one, ast.FunctionDef) and not one.name.startswith("__") and (one.lineno, one.name) in written:
            found += [f"{name}: {one.name}: {line}" for line in wrong_in(one, pxd)]
    return found


def wrong_in(function: ast.FunctionDef, pxd: str) -> list[str]:
    found = ["is final, but not to Cython"] * ("final" in [ast.unparse(each) for each in function.decorator_list])
    for one in ast.walk(function):
        if isinstance(one, ast.Attribute) and ast.unparse(one) == "self.out.send":
            found.append("sends by a method that Python classes override")
        if isinstance(one, ast.Return) and one.value is None:
            found.append("has a bare return, but the C function returns a number")
        if isinstance(one, ast.Constant) and type(one.value) is int and abs(one.value) >= 1 << 31:
            found.append("has an integer that Cython treats as a Python object")
        if isinstance(one, ast.Lambda | ast.GeneratorExp) and f" {function.name}(" in pxd:
            found.append("contains a closure, but the .pxd declares it as C")
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name) and one.target.id not in typed(function):
            found.append(f"{one.target.id} is annotated but has no C type")
    return found


def typed(function: ast.FunctionDef) -> dict[str, str]:
    """The types in its decorator `cython.locals`."""
    return {
        keyword.arg or "": ast.unparse(keyword.value)
        for decorator in function.decorator_list
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "cython.locals"
        for keyword in decorator.keywords
    }


CONSTANTS: list[tuple[object, str]] = [  # a value, and the type of its C variable; empty if it has none
    (7, ""), (1 << 40, "long long"), (1 << 63, "unsigned long long"),
    ((1, 2), "tuple"), ([1], "list"), ({1: 2}, "dict"), ("text", ""), (1.5, ""),
]  # fmt: skip
RECEIVE = "return FairK_on_message(self, src, msg) if type(self) is FairK else self.on_message(src, msg)"


def wrong_types(expand: ModuleType) -> list[str]:
    """Checks the types of one function's local variables, and that functions which cannot be C are recognised."""
    tree = ast.parse(expanded(expand, "fairgate.protocols.fair_k").py())
    assign = next(one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef) and one.name == "assign")
    found = [] if typed(assign) == {"a": "tuple", "c": "cython.longlong"} else [f"assign: {typed(assign)}"]
    receive = next(one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef) and one.name == "receive")
    found += [] if ast.unparse(receive.body[0]) == RECEIVE else [f"receive: {ast.unparse(receive.body[0])}"]
    for body in ("return lambda: 1", "return sum(x for x in y)", "yield 1", "def inner(): pass"):
        function = ast.parse(f"def f(self):\n    {body}").body[0]
        found += [f"as C: {body}"] * expand.can_be_c(function)
    for head in ("def f(self, x=1): pass", "def f(*x): pass", "@property\ndef f(self): pass", "def __f__(self): pass"):
        found += [f"as C: {head}"] * expand.can_be_c(ast.parse(head).body[0])
    module = expanded(expand, "fairgate.protocols.fair_k")
    for value, c in CONSTANTS:
        module.constant("CONSTANT", value)
        found += [f"{value}: {module.variables}"] * (module.variables.pop("CONSTANT", "") != c)
    return found


def unreported(expand: ModuleType, protocol: str) -> list[str]:
    """When loaded, it must register what its decorators would have registered, and must check what it decodes."""
    module = loaded(expand, protocol)
    cls = getattr(module, ALONE[protocol])
    found = [] if described(cls) == described(PROTOCOLS[protocol]) else [f"{protocol}: other fields"]
    for tag, kind in module.__dict__["MUTATED_KINDS"].items():
        fields = [field for field in merged_fields(kind) if field.is_state]
        with speaking(module), suppress(ValueError):
            decode((tag, *["nonsense" for _ in fields]))
            found += [f"{tag}: nonsense was decoded"] * bool(fields)
    return found
