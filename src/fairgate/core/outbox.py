"""The outbox: a node's only way to have an effect.

A handler changes the state of its node and calls these methods for everything else. No driver calls back into a node
from within one of them, so a step is atomic under every driver. The simulator's outbox pushes directly into the event
queue; the other drivers collect the effects.
"""

from typing import Any

from fairgate.core.message import Message


def not_sent(dst: object, msg: object) -> TypeError:
    return TypeError(f"send({dst!r}, {msg!r}): the first argument is the id of the receiver, the second a message")


class Outbox:
    __slots__ = ()

    def send(self, dst: int, msg: Message) -> None:
        raise NotImplementedError

    def send_direct(self, dst: int, msg: Message) -> None:
        """`send`, as compiled protocols call it (tools/expand.py).

        It is a C method that no Python class overrides, so the simulator's needs no check for that: its shortest path
        calls nothing and saves no registers.
        """
        self.send(dst, msg)

    def pass_on(self, dst: int, msg: Message) -> None:
        """Forward a message that came from elsewhere. It counts as a further hop, not as another message."""
        self.send(dst, msg)

    def set_timer(self, name: str, delay: int) -> None:
        """Call `on_timer(name)` after `delay` ns. Setting a timer again replaces it."""
        raise NotImplementedError

    def cancel_timer(self, name: str) -> None:
        raise NotImplementedError

    def granted(self, request: int, slot: int, fence: int) -> None:
        """The request is granted. Protocols without tokens pass NIL for slot and fence."""
        raise NotImplementedError

    def lost(self, request: int, why: str) -> None:
        """The permit of this request is no longer valid: its user must stop."""
        raise NotImplementedError

    def note(self, mark: str) -> None:
        """Mark that an interesting branch was taken. For coverage and traces only; nothing may depend on it."""

    def choose(self, n: int) -> int:
        """A number in 0..n-1. The driver decides whether it is seeded, truly random, recorded or enumerated."""
        raise NotImplementedError


class Collected(Outbox):
    """An outbox that collects effects as tuples until `drain()` returns them."""

    def __init__(self, chooser: Any = None) -> None:
        self.effects: list[tuple[Any, ...]] = []
        self.chooser = chooser

    def send(self, dst: int, msg: Message) -> None:
        if not isinstance(msg, Message):
            raise not_sent(dst, msg)
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
            raise RuntimeError("this node called choose(), but its driver has set no chooser")
        choice: int = self.chooser(n)
        return choice

    def drain(self) -> list[tuple[Any, ...]]:
        """The effects since the last call, in order."""
        effects = self.effects
        self.effects = []
        return effects
