"""The outbox: a node's only door to whatever drives it.

A handler changes its node and says here what it wants done. No driver calls back into a node from
inside one of these calls, so a step is atomic under every driver. The simulator's outbox pushes
straight into its event queue; the others collect.
"""

from typing import Any

from fairgate.core.message import Message


class Outbox:
    __slots__ = ()

    def send(self, dst: int, msg: Message) -> None:
        raise NotImplementedError

    def pass_on(self, dst: int, msg: Message) -> None:
        """Send on what came from elsewhere: a hop of a message on its way, and so counted, not a message of its own."""
        self.send(dst, msg)

    def set_timer(self, name: str, delay: int) -> None:
        """Call `on_timer(name)` after `delay` ns. Setting a timer again replaces it."""
        raise NotImplementedError

    def cancel_timer(self, name: str) -> None:
        raise NotImplementedError

    def granted(self, request: int, slot: int, fence: int) -> None:
        """The request is inside. Protocols without tokens say NIL for slot and fence."""
        raise NotImplementedError

    def lost(self, request: int, why: str) -> None:
        """The permit of this request is no longer good: whoever uses it must stop."""
        raise NotImplementedError

    def note(self, mark: str) -> None:
        """An interesting branch was taken; coverage and traces listen, nothing else may."""

    def choose(self, n: int) -> int:
        """A number in 0..n-1: seeded, from the system, recorded or enumerated, as the driver likes."""
        raise NotImplementedError


class Collected(Outbox):
    """An outbox that keeps what was said, as tuples, until `drain()`."""

    def __init__(self, chooser: Any = None) -> None:
        self.effects: list[tuple[Any, ...]] = []
        self.chooser = chooser

    def send(self, dst: int, msg: Message) -> None:
        self.effects.append(("send", dst, msg))

    def set_timer(self, name: str, delay: int) -> None:
        self.effects.append(("timer", name, delay))

    def cancel_timer(self, name: str) -> None:
        self.effects.append(("untimer", name))

    def granted(self, request: int, slot: int, fence: int) -> None:
        self.effects.append(("granted", request, slot, fence))

    def lost(self, request: int, why: str) -> None:
        self.effects.append(("lost", request, why))

    def note(self, mark: str) -> None:
        self.effects.append(("note", mark))

    def choose(self, n: int) -> int:
        if self.chooser is None:
            raise RuntimeError("this node asked for a choice, and its driver gave it no chooser")
        choice: int = self.chooser(n)
        return choice

    def drain(self) -> list[tuple[Any, ...]]:
        effects = self.effects
        self.effects = []
        return effects
