"""Mutants of agreed rosters: one module of recovery/views.py is changed, and all that build on it are loaded anew."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from unittest.mock import patch

from fairgate.check.roster_cases import CASES
from fairgate.check.rosters import explore_rosters
from fairgate.core.message import KINDS
from fairgate.recovery.views import Views
from fairgate.scenario.manual import Violation
from fairgate.walks.rosters import roster_walks
from tests.mutants.mutate import ROOT
from tests.recovery.peers import Peers

MODULES = ("agreed", "ballots", "leases", "changes", "views")  # each builds on those before
Edit = tuple[str, str, str]  # module, old text, new text
Judge = str | int | Callable[[], None]  # the name of an explored case, the seed of a walk, or a test


@contextmanager
def mutated(*edits: Edit) -> Iterator[type[Views]]:
    """The class Views after these edits. Within this context, messages are decoded as those of the mutant."""
    kinds, modules = dict(KINDS), {name: sys.modules[name] for name in map(full_name, MODULES)}
    KINDS.clear()
    try:
        for name in MODULES:
            module = sys.modules[full_name(name)] = ModuleType(full_name(name))
            code = compile(edited(name, edits), f"{name}.py", "exec", dont_inherit=True)  # annotations must be types
            exec(code, module.__dict__)
        mutant: type[Views] = module.Views
        sys.modules.update(modules)
        KINDS.update({**kinds, **KINDS})
        yield mutant
    finally:
        sys.modules.update(modules)
        KINDS.clear()
        KINDS.update(kinds)


def full_name(module: str) -> str:
    return f"fairgate.recovery.{module}"


def edited(module: str, edits: tuple[Edit, ...]) -> str:
    source = (ROOT / "recovery" / f"{module}.py").read_text()
    for name, old, new in edits:
        if name == module:
            if source.count(old) != 1:
                raise ValueError(f"{old!r} occurs {source.count(old)} times in {module}.py; a mutant needs exactly one")
            source = source.replace(old, new)
    return source


def verdict(views: type[Views], judge: Judge) -> str:
    """The property that the mutant breaks, or "" if it survives."""
    try:
        if isinstance(judge, str):
            found = explore_rosters(CASES[judge], views).violations
            return found[0].what.partition(":")[0] if found else ""
        if isinstance(judge, int):
            roster_walks([judge], views)
        else:
            with patch.object(Peers, "views", views):
                judge()
    except Violation as broken:
        return str(broken).partition(":")[0]
    except AssertionError:
        return "test"
    except ValueError:
        return "refused"
    return ""
