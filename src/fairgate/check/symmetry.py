"""Who is who does not matter: states that differ only in the names of peers are taken for one.

A protocol that compares ids for equality only, never for order, says where they stand in its keys and messages
(About.ids). Its peers can then be renamed: whatever can happen, can happen to the renamed. Of the renamings those
are used that keep the root and change nothing in the first state.
"""

from itertools import permutations
from typing import Any

from fairgate.core.ids import NIL

Ids = dict[str, tuple[int, ...]]
Names = tuple[int, ...]  # node -> its other name


def renamed(kind: str, thing: Any, names: Names, ids: Ids) -> Any:
    """A thing of a state (interning.py), with every id in it replaced."""
    if kind == "key":
        me, key = thing
        return names[me], renamed_fields(key, names, ids["key"])
    if kind == "message":
        src, dst, fields = thing
        return names[src], names[dst], renamed_fields(fields, names, ids.get(fields[0], ()))
    if kind == "status":
        return (names[thing[0]], *thing[1:])
    if kind == "history":
        fences, told = thing
        return fences, tuple(sorted((names[me], names[peer]) for me, peer in told))
    if kind == "clock":
        return tuple(thing[names.index(me)] for me in range(len(names)))
    return thing


def renamed_fields(fields: tuple[Any, ...], names: Names, places: tuple[int, ...]) -> tuple[Any, ...]:
    return tuple(renamed_ids(field, names) if place in places else field for place, field in enumerate(fields))


def renamed_ids(ids: Any, names: Names) -> Any:
    """An id, or a tuple of ids."""
    if isinstance(ids, tuple):
        return tuple(renamed_ids(each, names) for each in ids)
    return ids if ids == NIL else names[ids]


def renamings(nodes: int, root: int, things: list[tuple[str, Any]], ids: Ids) -> list[Names]:
    """All that keep the root, and these things as a whole; but for the one that changes nothing."""
    same = set(things)
    found = []
    for names in permutations(range(nodes)):
        if names[root] != root or names == tuple(range(nodes)):
            continue
        if {(kind, renamed(kind, thing, names, ids)) for kind, thing in things} == same:
            found.append(names)
    return found
