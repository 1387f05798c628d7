"""Interfaces of the engine's optional parts."""

from typing import TYPE_CHECKING, Any, Protocol

from fairgate.core.message import Message
from fairgate.core.node import Node

if TYPE_CHECKING:
    from fairgate.sim.engine import Engine


class NetworkModel(Protocol):
    """A faulty network, which decides what happens to a message (sim/faults.py)."""

    def carry(self, engine: "Engine", src: int, dst: int, msg: Message) -> None: ...


class Recorder(Protocol):
    """Writes a journal (sim/recorder.py): runs each step itself and records its effects."""

    def step(self, now: int, node: Node, event: str, *arguments: Any) -> None: ...


class Newcomers(Protocol):
    """Joins nodes to a dynamic ring, and starts the workload when the ring is complete (sim/joins.py)."""

    opened: int  # when the workload began

    def begin(self, engine: "Engine") -> None: ...

    def join(self, engine: "Engine", me: int) -> None: ...

    def leave(self, engine: "Engine", me: int) -> None: ...
