"""The pure modules of a room in plain Python, even where they are compiled: those work on mapped files alone.

The model runs them on lists, and the mutants change their source.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from fairgate import room
from fairgate.room import notes  # noqa: F401 (compiled, it cannot be imported beside plain modules)

__all__ = ["NAMES", "guestbook", "keeping", "lending", "links", "plain", "rules", "run", "source_of", "table"]
NAMES = ("words", "links", "table", "rules", "keeping", "guestbook", "lending")  # each imports from those before it


def source_of(name: str) -> str:
    return Path(str(room.__file__)).with_name(f"{name}.py").read_text()


def run(module: ModuleType, source: str) -> None:
    """Run a source in the namespace of a plain module. What it imports from the others are plain modules too."""
    with imported(plain):
        exec(compile(source, f"{module.__name__} (plain)", "exec"), vars(module))


@contextmanager
def imported(modules: dict[str, ModuleType]) -> Iterator[None]:
    """Meanwhile, `import` finds these modules of fairgate.room."""
    before = [(name, sys.modules.get(f"fairgate.room.{name}"), vars(room).get(name)) for name in modules]
    for name, module in modules.items():
        sys.modules[f"fairgate.room.{name}"] = module
        setattr(room, name, module)
    try:
        yield
    finally:
        for name, module_before, attribute in before:
            del sys.modules[f"fairgate.room.{name}"]
            delattr(room, name)
            if module_before is not None:
                sys.modules[f"fairgate.room.{name}"] = module_before
            if attribute is not None:
                setattr(room, name, attribute)


plain = {name: ModuleType(f"fairgate.room.{name}") for name in NAMES}
for each in NAMES:
    run(plain[each], source_of(each))

if TYPE_CHECKING:
    from fairgate.room import guestbook, keeping, lending, links, rules, table
else:
    _, links, table, rules, keeping, guestbook, lending = plain.values()
