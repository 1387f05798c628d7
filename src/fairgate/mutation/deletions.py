"""Automatic mutants: deletes each statement of each handler in turn, and judges the result (mutation/judges.py).

A statement whose deletion goes undetected is either not needed, or needed for something other than safety and liveness
(speed, fairness, tidiness). mutation/survivors.py lists the reason for each.
"""

import ast
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import module_from_spec
from pathlib import Path
from types import ModuleType

import fairgate
from fairgate.core import message
from fairgate.core.mutex import Mutex
from fairgate.mutation.judges import judge, prepare
from fairgate.processes import in_own_processes

# Methods that are not part of the algorithm.
UNTOUCHED = frozenset(
    ["__init__", "alone", "broken", "coordinators", "initialize", "loaded", "retaken", "show", "slots", "tokens"]
)
CENSUS = frozenset(["hear_time", "logical_time"])  # called by a census alone (tests/recovery/test_regenerate.py)
STATE = frozenset(["armed", "load_resp", "load_sides", "sides_key"])  # helpers of `key` and `load`
MOST_TURNS = 10_000  # iterations of one loop in one step


@dataclass(frozen=True)
class Deleted:
    protocol: str
    handler: str
    line: int
    statement: str  # its first line
    caught: str = ""  # the property that broke; "" if none did


def load_mutant(source: str, path: str) -> ModuleType:
    """A module made from changed source. Its messages have the original tags; the original ones stay registered."""
    loader = SourceFileLoader("mutant", path)
    module = module_from_spec(ModuleSpec("mutant", loader))  # Python 3.15 warns of modules without one
    module.__dict__["turns"] = turns
    module.__file__ = path
    known = dict(message.KINDS)
    message.KINDS.clear()
    try:
        exec(compile(source, path, "exec"), module.__dict__)
    finally:
        mutated = dict(message.KINDS)
        message.KINDS.clear()
        message.KINDS.update(known)
    module.__dict__["MUTATED_KINDS"] = mutated
    return module


@contextmanager
def speaking(module: ModuleType) -> Iterator[None]:
    """Within this context, messages are decoded as those of the mutant, the only ones that its nodes accept."""
    known = dict(message.KINDS)
    message.KINDS.update(module.__dict__["MUTATED_KINDS"])
    try:
        yield
    finally:
        message.KINDS.clear()
        message.KINDS.update(known)


def source_of(protocol: type[Mutex]) -> Path:
    """The path of the Python source, even if the compiled module is in use."""
    return Path(fairgate.__file__).parent.joinpath(*protocol.__module__.split(".")[1:]).with_suffix(".py")


def own_classes(protocol: type[Mutex]) -> list[type[Mutex]]:
    """The protocol's class, and those of its bases that implement a part of it and are not protocols themselves."""
    found: list[type[Mutex]] = []
    for cls in protocol.__mro__:
        if found and ("about" in vars(cls) or not cls.__module__.startswith("fairgate.protocols.")):
            break
        found.append(cls)
    return found


def places(tree: ast.Module, cls: str) -> Iterator[tuple[str, ast.stmt, list[ast.stmt], int]]:
    """Every statement of every handler: (handler, statement, the body that contains it, its index there)."""
    for top in tree.body:
        if isinstance(top, ast.ClassDef) and top.name == cls:
            for handler in top.body:
                if isinstance(handler, ast.FunctionDef) and not is_untouched(handler.name):
                    for owner in ast.walk(handler):
                        for body in (getattr(owner, "body", None), getattr(owner, "orelse", None)):
                            if isinstance(body, list):
                                for at, statement in enumerate(body):
                                    if matters(statement):
                                        yield handler.name, statement, body, at


def is_untouched(name: str) -> bool:
    """Is the method not part of the algorithm? Methods x_key and load_x convert field x for a key."""
    return name in UNTOUCHED | CENSUS | STATE or name.endswith("_key") or name.startswith("load_")


def matters(statement: ast.stmt) -> bool:
    """False for docstrings, `pass`, assertions, bare declarations and marks: deleting them changes no behaviour."""
    if isinstance(statement, ast.Pass | ast.Assert) or (isinstance(statement, ast.AnnAssign) and not statement.value):
        return False
    if isinstance(statement, ast.If) and not statement.orelse:
        return any(matters(inner) for inner in statement.body)
    if isinstance(statement, ast.Expr):
        text = ast.unparse(statement)
        return not isinstance(statement.value, ast.Constant) and not text.startswith("self.out.note(")
    return True


def count_places(protocol: type[Mutex]) -> int:
    return sum(count_in(cls) for cls in own_classes(protocol))


def count_in(cls: type[Mutex]) -> int:
    return sum(1 for _ in places(ast.parse(source_of(cls).read_text()), cls.__name__))


def mutant_at(protocol: type[Mutex], number: int) -> tuple[Deleted, ModuleType]:
    """The mutant in which the statement with this number is deleted."""
    for cls in own_classes(protocol):
        if number < count_in(cls):
            break
        number -= count_in(cls)
    path = source_of(cls)
    tree = ast.parse(path.read_text())
    handler, statement, body, at = list(places(tree, cls.__name__))[number]
    body[at] = ast.copy_location(ast.Pass(), statement)
    module = load_mutant(ast.unparse(Bounded().visit(tree)), str(path))
    if cls is not protocol:
        module = rebased(protocol, cls.__module__, module)
    return Deleted(protocol.about.name, handler, statement.lineno, ast.unparse(statement).splitlines()[0]), module


def rebased(protocol: type[Mutex], name: str, base: ModuleType) -> ModuleType:
    """The protocol's module, loaded on top of a mutant of the module `name`, and so are the modules in between."""
    originals: dict[str, ModuleType] = {}
    modules = [cls.__module__ for cls in own_classes(protocol)]
    classes = own_classes(protocol)[: modules.index(name)]
    module = base
    try:
        for above, cls in zip([name, *[cls.__module__ for cls in reversed(classes)]], reversed(classes), strict=False):
            originals[above] = sys.modules[above]
            sys.modules[above] = module
            path = source_of(cls)
            module = load_mutant(path.read_text(), str(path))
    finally:
        sys.modules.update(originals)
    return module


class Bounded(ast.NodeTransformer):
    """Limits the iterations of `while` loops, so that an endless loop is detected like any other mistake."""

    def visit_While(self, node: ast.While) -> ast.For:
        self.generic_visit(node)
        again = ast.Call(ast.Name("turns", ast.Load()), [], [])
        leave = ast.If(ast.UnaryOp(ast.Not(), node.test), [ast.Break()], [])
        loop = ast.For(ast.Name("_", ast.Store()), again, [leave, *node.body], [])
        return ast.fix_missing_locations(ast.copy_location(loop, node))


def turns() -> Iterator[int]:
    yield from range(MOST_TURNS)
    raise RuntimeError(f"endless loop: more than {MOST_TURNS} iterations")


def judged_at(protocol: type[Mutex], number: int) -> Deleted:
    deleted, module = mutant_at(protocol, number)
    with speaking(module):
        return replace(deleted, caught=judge(getattr(module, protocol.__name__)))


def delete_all(protocol: type[Mutex], workers: int = 1) -> Iterator[Deleted]:
    """Delete every statement in turn and judge the mutants. With several workers, results come as they finish.

    A mutant of a class with compiled bases may crash its process, for example if a method returns None.
    """
    prepare(protocol)
    for number, judged in in_own_processes(partial(judged_at, protocol), range(count_places(protocol)), workers):
        yield judged or replace(mutant_at(protocol, number)[0], caught="crash")
