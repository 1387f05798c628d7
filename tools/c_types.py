"""Decides what is compiled and with which C types, from declarations and annotations.

A `Project` knows the modules that are compiled. Those with a .pxd beside them are hand-tuned; those that declare
messages, records or nodes (core/declare.py) are expanded by tools/expand.py.
"""

import ast
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, get_type_hints

from fairgate.core.authors import known_kind
from fairgate.core.declare import FIELDS
from fairgate.core.kinds import Kind

MARKER = "from fairgate.core.declare import "
CLOSURES = (ast.Lambda, ast.GeneratorExp, ast.FunctionDef, ast.AsyncFunctionDef, ast.Yield, ast.YieldFrom)


def is_declared(source: str) -> bool:
    """Does a module with this source declare anything?"""
    return any(line.startswith(MARKER) for line in source.splitlines())


class Project:
    """The modules that are compiled, and the names that each offers to the C code of the others."""

    def __init__(self, src: Path) -> None:
        self.src = src
        self.hand_made: dict[str, set[str]] = {}  # module -> names in its .pxd; methods as Class.method
        self.declared: list[str] = []
        for path in sorted(src.rglob("*.py")):
            name = ".".join(path.relative_to(src).with_suffix("").parts)
            if path.with_suffix(".pxd").exists():
                self.hand_made[name] = set(names_in_pxd(path.with_suffix(".pxd").read_text()))
            elif is_declared(path.read_text()):
                self.declared.append(name)
        for name in self.declared:
            import_module(name)

    def source_of(self, name: str) -> Path:
        return self.src.joinpath(*name.split(".")).with_suffix(".py")

    def is_compiled(self, thing: Any) -> bool:
        """Is this a class or function that C code can use directly?"""
        module, name = getattr(thing, "__module__", ""), getattr(thing, "__qualname__", "")
        if module in self.hand_made:
            return name in self.hand_made[module]
        if module not in self.declared:
            return False
        return thing in FIELDS if isinstance(thing, type) else name in c_functions(self, module)

    def c_type(self, kind: Kind) -> str:
        if kind.c == "object" and isinstance(kind.base, type) and self.is_compiled(kind.base):
            return kind.base.__name__
        return kind.c if not kind.is_declared or self.is_compiled(kind.base) else "object"


def names_in_pxd(text: str) -> Iterator[str]:
    cls = ""
    for line in text.splitlines():
        words = line.split("(")[0].split()
        if line.startswith("cdef class"):
            cls = words[2].rstrip(":")
            yield cls
        elif "cpdef" in words:
            yield f"{cls}.{words[-1]}" if line.startswith(" ") else words[-1]


def can_be_c(function: ast.FunctionDef) -> bool:
    arguments = function.args
    special = arguments.vararg or arguments.kwarg or arguments.kwonlyargs or arguments.defaults
    decorated = bool(function.decorator_list) and not is_final(function)
    return not (special or has_closure(function) or decorated or function.name.startswith("__"))


def is_final(function: ast.FunctionDef) -> bool:
    """Is `typing.final` its only decorator? Then it becomes a C function, which only its own module can call."""
    return [ast.unparse(each) for each in function.decorator_list] == ["final"]


def has_closure(function: ast.FunctionDef) -> bool:
    return any(isinstance(inner, CLOSURES) for inner in ast.walk(function) if inner is not function)


def c_functions(project: Project, module: str) -> set[str]:
    tree = ast.parse(project.source_of(module).read_text())
    return {one.name for one in tree.body if isinstance(one, ast.FunctionDef) and can_be_c(one)}


def c_signature(project: Project, function: ast.FunctionDef, live: Any) -> str:
    """The function's line in the .pxd. Errors show in the result, since asking Python after every call costs more."""
    hints = get_type_hints(live, include_extras=True)
    arguments = []
    for argument in function.args.args:
        name = argument.arg
        kind = known_kind(f"{function.name}: {name}", hints[name]) if name in hints else None
        arguments.append(f"{project.c_type(kind)} {name}" if kind else name)
    result = hints.get("return", Any)
    c = "bint" if result is type(None) else project.c_type(known_kind(f"{function.name}: return", result))  # None: 0
    failure = " except -1" if c == "bint" else ""  # for numbers Cython's default: after -1 it asks Python
    return f"cpdef {c} {function.name}({', '.join(arguments)}){failure}"


def c_locals(project: Project, function: ast.FunctionDef, module: ModuleType) -> str:
    """A decorator with the C types of the annotated local variables; empty if there are none."""
    found = {}
    for one in ast.walk(function):
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name):
            hint = eval(compile(ast.Expression(one.annotation), "", "eval"), vars(module))
            found[one.target.id] = project.c_type(known_kind(f"{function.name}: {one.target.id}", hint))
    return f"@cython.locals({', '.join(f'{name}={as_cython(c)}' for name, c in found.items())})" if found else ""


def as_cython(c: str) -> str:
    known = {"long long": "cython.longlong", "unsigned long long": "cython.ulonglong", "int": "cython.int"}
    return (known | {"bint": "cython.bint", "double": "cython.double"}).get(c, c)


def with_results(source: str) -> str:
    """The source with each bare `return` replaced by `return 0`: in C, 0 means success and -1 an error."""
    lines = source.splitlines()
    for function in ast.walk(ast.parse(source)):
        if isinstance(function, ast.FunctionDef) and not function.name.startswith("__"):
            for one in ast.walk(function):
                if isinstance(one, ast.Return) and one.value is None:
                    line = lines[one.lineno - 1]
                    assert line.strip().partition("#")[0].rstrip() == "return", f"not alone on its line: {line}"
                    lines[one.lineno - 1] = line.replace("return", "return 0", 1)
    return "\n".join([*lines, ""])


def with_finals(source: str) -> str:
    """The source with `typing.final` replaced by Cython's.

    Cython calls a final method directly only if it reads this at its definition; the .pxd alone does not suffice.
    """
    found = re.sub(r"^( +)@final$", r"\1@cython.final", source, flags=re.MULTILINE)
    if found == source:
        return source
    return found.replace("\nfrom typing import ", "\nimport cython; from typing import ", 1)
