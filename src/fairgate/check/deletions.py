"""Automatic mutants: each statement of each handler deleted in turn, and the checker asked to notice.

A statement that can be deleted unnoticed is either not needed, or needed for something that is not safety or
liveness (speed, fairness, tidiness). check/survivors.py says which, one by one.
"""

import ast
import copy
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import fairgate
from fairgate.check.case import Case
from fairgate.check.explore import Explorer
from fairgate.check.fd_walk import fd_walks
from fairgate.check.model import Model
from fairgate.check.walk import walks
from fairgate.core import message
from fairgate.core.mutex import Mutex
from fairgate.sim.hand import Violation

UNTOUCHED = frozenset(["__init__", "key", "load", "show", "tokens", "coordinators"])  # not the algorithm
MOST_STATES = 20_000  # of one case; a mutant that shows nothing until then goes on to the walks
WALKS = range(1_000)


@dataclass(frozen=True)
class Deleted:
    protocol: str
    handler: str
    line: int
    statement: str  # its first line
    caught: str  # the property that broke; "" if none did


def load_mutant(source: str, path: str) -> ModuleType:
    """A module made of changed source. Its messages carry the tags of the original's, which stay registered."""
    module = ModuleType("mutant")
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
    """Meanwhile messages are decoded to those of a mutant: its nodes know no others."""
    known = dict(message.KINDS)
    message.KINDS.update(module.__dict__["MUTATED_KINDS"])
    try:
        yield
    finally:
        message.KINDS.clear()
        message.KINDS.update(known)


def source_of(protocol: type[Mutex]) -> Path:
    """The plain source, also where the compiled module runs."""
    return Path(fairgate.__file__).parent.joinpath(*protocol.__module__.split(".")[1:]).with_suffix(".py")


def places(tree: ast.Module, cls: str) -> Iterator[tuple[str, ast.stmt, list[ast.stmt], int]]:
    """Every statement of every handler: (handler, statement, the body it stands in, where)."""
    for top in tree.body:
        if isinstance(top, ast.ClassDef) and top.name == cls:
            for handler in top.body:
                if isinstance(handler, ast.FunctionDef) and handler.name not in UNTOUCHED:
                    for owner in ast.walk(handler):
                        for body in (getattr(owner, "body", None), getattr(owner, "orelse", None)):
                            if isinstance(body, list):
                                for at, statement in enumerate(body):
                                    if matters(statement):
                                        yield handler.name, statement, body, at


def matters(statement: ast.stmt) -> bool:
    """Docstrings, `pass`, assertions and notes to the observer change nothing by going."""
    if isinstance(statement, ast.Pass | ast.Assert):
        return False
    if isinstance(statement, ast.If) and not statement.orelse:
        return any(matters(inner) for inner in statement.body)
    if isinstance(statement, ast.Expr):
        text = ast.unparse(statement)
        return not isinstance(statement.value, ast.Constant) and not text.startswith("self.out.note(")
    return True


def count_places(protocol: type[Mutex]) -> int:
    return sum(1 for _ in places(ast.parse(source_of(protocol).read_text()), protocol.__name__))


def mutants(protocol: type[Mutex]) -> Iterator[tuple[str, int, str, type[Mutex], dict[str, type[message.Message]]]]:
    """(handler, line, statement, class, its messages) with one statement deleted, one after the other."""
    path = source_of(protocol)
    tree = ast.parse(path.read_text())
    for number in range(count_places(protocol)):
        mutated = copy.deepcopy(tree)
        handler, statement, body, at = list(places(mutated, protocol.__name__))[number]
        body[at] = ast.copy_location(ast.Pass(), statement)
        module = load_mutant(ast.unparse(mutated), str(path))
        first = ast.unparse(statement).splitlines()[0]
        kinds = module.__dict__["MUTATED_KINDS"]
        yield handler, statement.lineno, first, getattr(module, protocol.__name__), kinds


def cases(protocol: type[Mutex]) -> list[Case]:
    """Small systems that together reach every handler."""
    name = protocol.about.name
    second = 1_000_000_000
    if protocol.timed:
        lease = {"lease": 2 * second, "drift": 500_000}
        return [
            Case(name, nodes=2, requests=2, ticks=5, cancels=1, options=lease),
            Case(name, nodes=3, requests=1, ticks=4, crashes=1, options=lease),
        ]
    if protocol.about.detectors:
        return [Case(name, nodes=3, k=1, requests=1, crashes=1), Case(name, nodes=3, k=2, requests=1, crashes=1)]
    found = [Case(name, nodes=3, requests=2), Case(name, nodes=3, requests=2, cancels=1)]
    for option, choices in protocol.about.options.items():
        for choice in choices if isinstance(choices, tuple) else ():
            found.append(Case(name, nodes=3, k=2, requests=1, options={option: choice}))
    if protocol.about.many:
        found.append(Case(name, nodes=3, k=2, requests=2, cancels=1))
    else:
        found.append(Case(name, nodes=4, requests=1))
    return found


def judge(protocol: type[Mutex], kinds: dict[str, type[message.Message]]) -> str:
    """The property that the checker finds broken in one of the cases, or random walks of larger ones; or ""."""
    known = dict(message.KINDS)
    message.KINDS.update(kinds)  # what the mutant's messages decode to
    try:
        for case in cases(protocol):
            report = Explorer(case, Model(case, protocol)).run(most_states=MOST_STATES)
            if report.violations:
                return report.violations[0].what.split(":", maxsplit=1)[0]
        if protocol.about.detectors:
            fd_walks(protocol, WALKS)
        elif not protocol.timed:
            walks(protocol, WALKS)
    except Violation as broken:
        return str(broken).split(":", maxsplit=1)[0]
    except Exception as error:  # whatever a mutant runs into is noticed
        return type(error).__name__
    finally:
        message.KINDS.clear()
        message.KINDS.update(known)
    return ""


def delete_all(protocol: type[Mutex]) -> Iterator[Deleted]:
    for handler, line, statement, mutated, kinds in mutants(protocol):
        yield Deleted(protocol.about.name, handler, line, statement, judge(mutated, kinds))
