"""Permits that are garbage-collected while they are held: a ResourceWarning tells of them, as of files.

A weak reference notices it. `__del__` would run at every release as well, and a Ctrl-C that arrives in it is lost.

Unlike a file, the permit is not closed: its slot stays taken until the gate or the peer is closed, its lease is over,
or the process ends. The program may still rely on nobody else being inside, as one that only wants to run once per host
does. And Python collects garbage between any two instructions of any thread, also in the middle of a change of a gate.
"""

import os
import warnings
from typing import Protocol
from weakref import ref


class Held(Protocol):
    @property
    def slots(self) -> tuple[int, ...]: ...

    def is_valid(self) -> bool: ...


class Watch(ref[object]):
    """Of one permit. With `python -X tracemalloc=9` the warning shows where this was created: who called `acquire`."""

    __slots__ = ("gate", "held")

    gate: str
    held: Held


watches: dict[int, Watch] = {}  # by the id of what is held; whoever releases it takes it out


def watch(permit: object, gate: str, held: Held) -> None:
    one = Watch(permit, forgotten)
    one.gate = gate
    one.held = held
    watches[id(held)] = one


def forgotten(one: Watch) -> None:
    """Called when the permit is gone."""
    watches.pop(id(one.held), None)
    if one.held.is_valid():
        slots = f"slot {', '.join(map(str, one.held.slots))}" if one.held.slots else "without a slot"
        warnings.warn(
            f"a permit for gate {one.gate} ({slots}) was garbage-collected while it was held, so its slot stays taken:"
            " call release(), or use `with`",
            ResourceWarning,
            source=one,
            stacklevel=2,
        )


os.register_at_fork(after_in_child=watches.clear)  # the permits of the parent are not ours to release
