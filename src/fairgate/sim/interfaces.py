"""What an engine can be given besides, as it sees it."""

from typing import TYPE_CHECKING, Any, Protocol

from fairgate.core.message import Message
from fairgate.core.node import Node

if TYPE_CHECKING:
    from fairgate.sim.engine import Engine


class NetworkModel(Protocol):
    """What a faulty network does with a message (sim/faults.py)."""

    def carry(self, engine: "Engine", src: int, dst: int, msg: Message) -> None: ...


class Recorder(Protocol):
    """What writes a journal (sim/recorder.py): makes the step itself and notes what came of it."""

    def step(self, now: int, node: Node, event: str, *arguments: Any) -> None: ...


class Newcomers(Protocol):
    """What brings nodes to a ring that learns, and the work to its beginning (sim/joins.py)."""

    opened: int  # when the work began

    def begin(self, engine: "Engine") -> None: ...

    def join(self, engine: "Engine", me: int) -> None: ...

    def leave(self, engine: "Engine", me: int) -> None: ...
