"""Symmetry reduction: states that differ only in the names of peers count as one state.

A protocol that compares ids only for equality, never for order, declares where ids occur in its keys and messages
(About.ids). Renaming its peers then turns every run into another valid run. Only renamings that keep the root and leave
the first state unchanged are used.
"""

from itertools import permutations
from typing import Any

from fairgate.core.ids import NIL

Ids = dict[str, tuple[int, ...]]
Names = tuple[int, ...]  # node -> its new name


def renamed(kind: str, thing: Any, names: Names, ids: Ids) -> Any:
    """A thing (interning.py) with every id in it replaced."""
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
    """`ids` is an id, or a (nested) tuple of ids."""
    if isinstance(ids, tuple):
        return tuple(renamed_ids(each, names) for each in ids)
    return ids if ids == NIL else names[ids]


def renamings(nodes: int, root: int, things: list[tuple[str, Any]], ids: Ids) -> list[Names]:
    """All renamings that keep the root and the set of these things, without the identity."""
    same = set(things)
    found = []
    for names in permutations(range(nodes)):
        if names[root] != root or names == tuple(range(nodes)):
            continue
        if {(kind, renamed(kind, thing, names, ids)) for kind, thing in things} == same:
            found.append(names)
    return found
