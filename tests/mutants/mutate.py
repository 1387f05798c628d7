"""Mutants of a protocol: its source with one line replaced.

Mutants are loaded from source, so they work whether or not the protocol is compiled. It is an error if the line does
not occur exactly once, since such a mutant would prove nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import fairgate
from fairgate.core.message import KINDS
from fairgate.core.mutex import Mutex
from fairgate.mutation.deletions import load_mutant
from fairgate.scenario.manual import Violation
from fairgate.walks.walk import walks

ROOT = Path(fairgate.__file__).parent


def mutant(name: str, old: str, new: str) -> ModuleType:
    """The module fairgate.<name>, with the text `old` replaced by `new`."""
    import_module(f"fairgate.{name}")  # the original registers its message tags before the mutant's replace them
    path = ROOT / (name.replace(".", "/") + ".py")
    source = path.read_text()
    if source.count(old) != 1:
        raise ValueError(f"{old!r} occurs {source.count(old)} times in {path.name}; a mutant needs exactly one")
    return load_mutant(source.replace(old, new), str(path))


def speak(module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until the end of the test, decode messages to the mutant's classes, the only ones that its nodes know."""
    for tag, kind in module.__dict__["MUTATED_KINDS"].items():
        monkeypatch.setitem(KINDS, tag, kind)


Walker = Callable[[type[Mutex], range, dict[str, Any] | None], object]


def caught(
    module: ModuleType, cls: str, seeds: int = 300, options: dict[str, Any] | None = None, walker: Walker = walks
) -> str:
    """The name of the property that random walks of the mutant break, or "" if it survives."""
    protocol: type[Mutex] = getattr(module, cls)
    try:
        walker(protocol, range(seeds), options)
    except Violation as broken:
        return str(broken).split(":", maxsplit=1)[0]
    except AssertionError:  # from the protocol itself, such as a turn for a node that never asked
        return "assertion"
    except Exception as error:
        return type(error).__name__
    return ""
