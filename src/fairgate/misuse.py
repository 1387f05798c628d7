"""Errors for objects of the API that are used in a way that cannot work. They say what would."""

from typing import TYPE_CHECKING, NoReturn


class OfOneProcess:
    """What belongs to one process: it cannot be pickled or copied."""

    __slots__ = ()

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError(
            f"cannot pickle or copy {self!r}, which belongs to this process: open it in the child, or create the gate"
            " with fairgate.lock or fairgate.sync.lock, which every process opens for itself"
        )


class ForTasks:
    """What `async with` enters: `with` raises TypeError."""

    __slots__ = ()

    entered_by = "async with"

    if not TYPE_CHECKING:  # type checkers refuse `with` by themselves as long as they see no such methods

        def __enter__(self) -> NoReturn:
            raise TypeError(f"{self!r} is for asyncio: use `{self.entered_by}`, or fairgate.sync instead of fairgate")

        def __exit__(self, *_: object) -> None:
            """Never called, but `with` looks for it first."""


class ForThreads:
    """What `with` enters: `async with` raises TypeError."""

    __slots__ = ()

    if not TYPE_CHECKING:

        def __aenter__(self) -> NoReturn:
            raise TypeError(f"{self!r} is for threads: use `with`, or fairgate instead of fairgate.sync")

        def __aexit__(self, *_: object) -> None:
            """As `ForTasks.__exit__`."""
