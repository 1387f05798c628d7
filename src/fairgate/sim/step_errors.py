"""Where a protocol failed: an exception from a node gets a note with the node, the time and the line of the protocol.

The note is part of the exception, so it reaches the caller even from a worker process, where the traceback ends.
"""

from collections.abc import Iterator
from traceback import walk_tb

PROTOCOLS, FRAMEWORK = "fairgate.protocols.", "fairgate.core."


def add_place(wrong: Exception, node: object, when: str) -> None:
    """Add the note "WHEN, FILE:LINE" to an exception that this node or a node above it has raised.

    An exception from elsewhere, such as a defect of the simulator, gets no note.
    """
    place = place_of(wrong, set(modules(node)))
    if place:
        wrong.add_note(f"{when}, {place}")


def modules(node: object) -> Iterator[str]:
    """The modules of the classes of a node, and of the nodes that it carries."""
    while node is not None:
        yield from (cls.__module__ for cls in (node if isinstance(node, type) else type(node)).__mro__)
        node = getattr(node, "upper", None)


def place_of(wrong: Exception, known: set[str]) -> str:
    """The innermost line of the protocol, or else of its base classes; "" if the traceback passes through neither."""
    own = base = ""
    for frame, line in walk_tb(wrong.__traceback__):
        module = frame.f_globals.get("__name__", "")
        if module.startswith(PROTOCOLS) or (module in known and not module.startswith(FRAMEWORK)):
            own = f"{frame.f_code.co_filename}:{line}"
        elif module in known:
            base = f"{frame.f_code.co_filename}:{line}"
    return own or base


def place_noted(wrong: BaseException) -> str:
    """The note that `add_place` has added, or ""."""
    notes: list[str] = getattr(wrong, "__notes__", [])
    return notes[0] if notes else ""
