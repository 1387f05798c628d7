"""Mutants of the build step (tools/expand.py): each generates a different module, or one whose lines have moved."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

from fairgate.core.numbers import COMPILED
from tests.support.expanded import expanded, moved_lines, other_outcomes, unreported, wrong_text, wrong_types
from tests.tools.test_expand import BOUNDED_CLASS, FAIR_K_PXD
from tools import c_types, expand

pytestmark = pytest.mark.skipif(COMPILED, reason="`make test` runs it with FAIRGATE_PURE=1")

EXPAND, C_TYPES = Path(expand.__file__), Path(c_types.__file__)
MUTANTS = {
    "decorators stay": ("            self.blank(decorator.lineno", "            (lambda *_: None)(decorator.lineno"),
    "derived methods are inserted over code": ("if line not in kept]", "]"),
    "an inserted line moves the lines below": (
        '            self.lines[line - 1] = f"    {text}".encode()',
        '            self.lines[line - 1] = f"    {text}\\n".encode()',
    ),
    "an edit starts one column too far right": (
        "line[: one.col_offset] + text.encode()",
        "line[: one.col_offset + 1] + text.encode()",
    ),
    "a line is edited from left to right": ("-edit[0].col_offset", "edit[0].col_offset"),
    "large integers are literals": ("LITERALS = 1 << 31", "LITERALS = 1 << 80"),
    "constants stay Python objects": ("if type(value) in (int, list, dict, tuple):", "if type(value) is int:"),
    "every class is final": ("not cls.__subclasses__() and not issubclass(cls, Node)", "True"),
    "methods of a base are declared again": (
        "        if any(function.name in vars(base) for base in cls.__mro__[1:]):\n",
        "        if False:\n",
    ),
    "closures become C functions": ("return not (special or has_closure(function) or ", "return not (special or "),
    "messages are decoded without checks": (
        'decoder(cls.__name__, merged_fields(cls), f"make_{cls.__name__}").text',
        'f"decode_{cls.__name__} = make_{cls.__name__}\\n"',
    ),
    "handlers of a base are not dispatched": ("for handler in merged_handlers(cls)}", "for handler in HANDLERS[cls]}"),
    "an empty return is not given a value": ('line.replace("return", "return 0", 1)', "line"),
    "locals stay Python objects": ("            self.type_locals(function)\n", ""),
    "ids are 32 bits": ('known = {"long long": "cython.longlong"', 'known = {"long long": "cython.int"'),
    "final methods are found in a table": (
        'r"\\1@cython.final", source, flags=re.MULTILINE)',
        'r"\\1@final", source, flags=re.MULTILINE)',
    ),
    "messages are sent by a Python method": ('f"{SEND}_direct"', "SEND"),
    "the simulator ignores a subclass's on_message": (" if type(self) is {cls.__name__} else {asked}", ""),
    "nothing is reported at import": ("        self.report(cls, definition)\n", ""),
}


def mutated(old: str, new: str) -> ModuleType:
    """tools/expand.py with one change, in itself or in what it imports from tools/c_types.py."""
    changed = [path for path in (EXPAND, C_TYPES) if path.read_text().count(old) == 1]
    assert len(changed) == 1, f"{old!r} must occur exactly once"
    original = sys.modules["tools.c_types"]
    try:
        if changed == [C_TYPES]:
            sys.modules["tools.c_types"] = executed(C_TYPES, C_TYPES.read_text().replace(old, new))
        return executed(EXPAND, EXPAND.read_text().replace(old, new))
    finally:
        sys.modules["tools.c_types"] = original


def executed(path: Path, source: str) -> ModuleType:
    module = ModuleType("mutant")
    exec(compile(source, str(path), "exec"), module.__dict__)
    return module


def problems(module: ModuleType) -> list[str]:
    """All problems that the checks of tests/tools/test_expand.py find."""
    names = ("fair_k", "fair_k_bounded", "leased", "bv95")
    modules = [f"fairgate.protocols.{name}" for name in names]
    texts = [*modules, "fairgate.protocols.sigma.strawman", "fairgate.protocols.one_line.coordinator"]
    found = [line for name in texts for line in (*moved_lines(module, name), *wrong_text(module, name))]
    found += [line for name in names for line in (*other_outcomes(module, name), *unreported(module, name))]
    found += ["fair_k.pxd"] * (expanded(module, modules[0]).pxd_text() != FAIR_K_PXD)
    found += ["fair_k_bounded.pxd"] * (BOUNDED_CLASS not in expanded(module, modules[1]).pxd_text())
    return found + wrong_types(module)


def test_the_original_has_no_problems() -> None:
    assert problems(expand) == []


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_caught(name: str) -> None:
    module = mutated(*MUTANTS[name])
    try:
        found = problems(module)
    except Exception as error:  # the generated text is not valid Python, or does not run
        found = [repr(error)]
    assert found
