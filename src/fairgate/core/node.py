"""The Node class: a deterministic state machine that behaves the same under every driver.

Rules of the contract:
  - Each `on_...` call is atomic. Effects leave the node only through `self.out`.
  - Time is in integer nanoseconds. The driver sets `node.now` before each call to a `timed` node; other nodes must not
    read it. Timers are relative, and setting a timer again replaces it.
  - Randomness comes only from `self.out.choose(n)`. The iteration order of a set must never determine effects.
  - `key()` is the whole state, with a version. A fresh node of the same setup that has loaded this key continues
    exactly as the original would. A key contains times as time left, so it is valid on any clock.
"""

from typing import TYPE_CHECKING, Any, Self

from fairgate.core.message import Key, Message
from fairgate.core.outbox import Outbox
from fairgate.core.setup import Setup


class Record:
    """A base class for parts of a node's state. `@record` (core/declare.py) derives the methods of its subclasses."""

    __slots__ = ()

    def clear(self) -> None:
        """Reset every field that has a default to that default."""
        raise NotImplementedError

    if TYPE_CHECKING:  # whether a record has `key` or `key_at` depends on its fields

        def key_at(self, now: int) -> Key: ...

        @classmethod
        def from_key(cls, key: Key, now: int) -> Self: ...


class Node:
    __slots__ = ("me", "now", "out", "setup", "timers")

    version = 1  # of the key's layout
    timed = False  # does it read `now` or set timers?
    gates_independent = False  # for a node with many gates: are they independent of each other?

    def __init__(self, me: int, setup: Setup, out: Outbox) -> None:
        self.set_up(me, setup, out)

    def set_up(self, me: int, setup: Setup, out: Outbox) -> None:
        """The work of `__init__`. A class that is instantiated often during a run extends this method instead.

        Compiled, calls from class to class are C calls, whereas each `__init__` in a chain would pack its arguments
        again.
        """
        self.me = me
        self.setup = setup
        self.out = out
        self.now = 0
        self.timers: dict[str, int] | None = None  # name -> due time; created with the first timer
        self.set_fields(setup)
        self.initialize(setup)

    def set_fields(self, setup: Setup) -> None:
        """Derived from the declaration: set the options from the setup, and other fields to their defaults."""

    def initialize(self, setup: Setup) -> None:
        """Set what depends on the setup. This runs last, after all declared fields have their defaults."""

    # Inputs, called by a driver. A node overrides those it handles.

    def on_start(self) -> None:
        pass

    def on_acquire(self, request: int) -> None:
        raise NotImplementedError

    def on_release(self, request: int) -> None:
        raise NotImplementedError

    def on_again(self, released: int, request: int) -> None:
        """`on_release(released)`, then `on_acquire(request)`, as one step. A driver need not use it."""
        self.on_release(released)
        self.on_acquire(request)

    def on_cancel(self, request: int) -> None:
        raise NotImplementedError

    def on_message(self, src: int, msg: Message) -> None:
        raise NotImplementedError(f"{type(self).__name__} has no handlers, and received {msg}")

    def receive(self, src: int, msg: Message) -> None:
        """`on_message`, as the compiled simulator calls it. A compiled protocol goes straight to its handler."""
        self.on_message(src, msg)

    def on_timer(self, name: str) -> None:
        pass

    def on_view(self, number: int, members: tuple[int, ...], ghosts: tuple[int, ...]) -> None:
        """The gate has these members now. `ghosts` were excluded, and may be inside all the same for some time."""

    def on_suspect(self, peer: int, detector: str) -> None:
        pass

    def on_trust(self, peer: int, detector: str) -> None:
        pass

    def on_crash(self, peer: int) -> None:
        pass

    def on_join(self, contact: int) -> None:
        pass

    def on_leave(self) -> None:
        """The node is about to be stopped, and may tell the others."""

    def timer_due(self, name: str) -> None:
        """Fire a timer. Drivers call this, not `on_timer`. It disarms the timer first: the handler may set it again."""
        if self.timers is not None:
            self.timers.pop(name, None)
        self.on_timer(name)

    # Timers, for a node's own handlers.

    def set_timer(self, name: str, delay: int) -> None:
        if self.timers is None:
            assert self.timed, "only a timed node sets timers: write `timed = True` in its class"
            self.timers = {}
        self.timers[name] = self.now + delay
        self.out.set_timer(name, delay)

    def cancel_timer(self, name: str) -> None:
        if self.timers is not None and self.timers.pop(name, None) is not None:
            self.out.cancel_timer(name)

    def is_armed(self, name: str) -> bool:
        return self.timers is not None and name in self.timers

    # The whole state.

    def key(self) -> Key:
        raise NotImplementedError

    def load(self, key: Key) -> None:
        raise NotImplementedError

    def timers_key(self) -> Key:
        """Armed timers as (name, time left), for the key of a timed node."""
        if self.timers is None:
            return ()
        return tuple(sorted([(name, due - self.now) for name, due in self.timers.items()]))

    def load_timers(self, key: Key) -> None:
        """Arm the timers of a key again, after a takeover or in a clone."""
        for name, left in key:
            self.set_timer(name, left)

    def check_version(self, key: Key) -> None:
        if key[0] != self.version:
            raise ValueError(f"key has version {key[0]}, but this node reads version {self.version}")

    # Counts for the invariants.

    def slots(self) -> tuple[int, ...]:
        """The slots of the tokens that are here."""
        return ()

    def tokens(self) -> int:
        return len(self.slots())

    def coordinators(self) -> int:
        return 0

    def broken(self) -> str:
        """The invariant of its own state that does not hold now, between two steps, in one line; "" if all hold."""
        return ""

    def show(self) -> dict[str, Any]:
        """The state under the paper's names, for scenario files and for people to read."""
        return {}
