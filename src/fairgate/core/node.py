"""A node: a deterministic state machine, and the same one under every driver.

Rules of the contract:
  - each `on_...` call is atomic; effects leave only through `self.out`;
  - time is integer nanoseconds, set by the driver as `node.now` before a call to a `timed` node, and
    no other node reads it; timers are relative, and setting one again replaces it;
  - randomness comes only from `self.out.choose(n)`; no set is ever iterated into effects;
  - `key()` is the whole state, with a version, and `load(key())` on a fresh node of the same setup
    goes on exactly as the original. Times stand in a key as time left, so a key outlives its clock.
"""

from typing import Any

from fairgate.core.message import Key, Message
from fairgate.core.outbox import Outbox
from fairgate.core.setup import Setup


class Node:
    __slots__ = ("me", "now", "out", "setup", "timers")

    version = 1  # of the key's layout
    timed = False  # does it read `now` or set timers?
    gates_independent = False  # of one with many gates: is what happens at one gate nothing to the others?

    def __init__(self, me: int, setup: Setup, out: Outbox) -> None:
        self.set_up(me, setup, out)

    def set_up(self, me: int, setup: Setup, out: Outbox) -> None:
        """What `__init__` does; a class of which many nodes are made while a run goes on adds its own here.

        Compiled, these are C calls from class to class; a chain of `__init__` packs its arguments anew in each.
        """
        self.me = me
        self.setup = setup
        self.out = out
        self.now = 0
        self.timers: dict[str, int] | None = None  # name -> when it is due; made for the first one
        self.set_fields(setup)
        self.initialize(setup)

    def set_fields(self, setup: Setup) -> None:
        """Derived from the declaration: options as the setup has them, and the first values of fields."""

    def initialize(self, setup: Setup) -> None:
        """What depends on the setup: it runs last, when all declared fields have their first values."""

    # What a driver calls. A node overrides what concerns it.

    def on_start(self) -> None:
        pass

    def on_acquire(self, request: int) -> None:
        raise NotImplementedError

    def on_release(self, request: int) -> None:
        raise NotImplementedError

    def on_cancel(self, request: int) -> None:
        raise NotImplementedError

    def on_message(self, src: int, msg: Message) -> None:
        raise NotImplementedError

    def on_timer(self, name: str) -> None:
        pass

    def on_view(self, number: int, members: tuple[int, ...]) -> None:
        pass

    def on_suspect(self, peer: int, detector: str) -> None:
        pass

    def on_trust(self, peer: int, detector: str) -> None:
        pass

    def on_crash(self, peer: int) -> None:
        pass

    def on_join(self, contact: int) -> None:
        pass

    def on_leave(self) -> None:
        """It is about to be stopped, and may say so to the others."""

    def timer_due(self, name: str) -> None:
        """How a driver fires a timer: it is forgotten first, so that the handler may set it again."""
        if self.timers is not None:
            self.timers.pop(name, None)
        self.on_timer(name)

    # What a node's own handlers call to keep time.

    def set_timer(self, name: str, delay: int) -> None:
        if self.timers is None:
            assert self.timed, "only a timed node sets timers"
            self.timers = {}
        self.timers[name] = self.now + delay
        self.out.set_timer(name, delay)

    def cancel_timer(self, name: str) -> None:
        if self.timers is not None and self.timers.pop(name, None) is not None:
            self.out.cancel_timer(name)

    def is_armed(self, name: str) -> bool:
        return self.timers is not None and name in self.timers

    # The state, whole.

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
        """Arm the timers of a key again, at a takeover or in a clone."""
        for name, left in key:
            self.set_timer(name, left)

    def check_version(self, key: Key) -> None:
        if key[0] != self.version:
            raise ValueError(f"key of version {key[0]}, this node reads version {self.version}")

    # What the invariants count.

    def tokens(self) -> int:
        return 0

    def coordinators(self) -> int:
        return 0

    def show(self) -> dict[str, Any]:
        """The state by the paper's names, for scenario files and people."""
        return {}
