"""The marks that a protocol can note, read from its source. A swarm should meet each of them at least once."""

import ast
import inspect
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from fairgate.core.node import Node


def marks_of(*kinds: type[Node]) -> list[str]:
    """The marks of these classes and all their bases, in the order of the source."""
    found = (
        mark for kind in kinds for base in inspect.getmro(kind) for mark in marks_in(base.__module__, base.__name__)
    )
    return list(dict.fromkeys(found))


@cache
def marks_in(module: str, name: str) -> tuple[str, ...]:
    """The marks of one class and of the functions in its module. Other classes there may be other protocols."""
    source = source_of(module)
    body = ast.parse(source).body if source else []
    near = [part for part in body if not isinstance(part, ast.ClassDef) or part.name == name]
    return tuple(notes(node for part in near for node in ast.walk(part)))


def notes(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        match node:
            case ast.Call(func=ast.Attribute(attr="note"), args=[ast.Constant(value=str(mark))]):
                yield mark


def source_of(module: str) -> str:
    """The Python source of a module, even if it is compiled; "" for a module that was not loaded from a file."""
    try:
        spec = find_spec(module)
    except (ImportError, ValueError):
        return ""
    if spec is None or spec.origin is None:
        return ""
    path = Path(spec.origin).with_name(f"{module.rpartition('.')[2]}.py")
    return path.read_text() if path.is_file() else ""
