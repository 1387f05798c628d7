"""Gates of this host that need no `join`: every process opens them when it first uses them.

So a module may create them when it is imported, which opens nothing. A child that was forked afterwards opens its own,
and one that is started gets the name, not what its parent has opened.
"""

import os
from collections.abc import Iterator
from typing import Any, Protocol

from fairgate.arguments import check_gate
from fairgate.errors import GateClosed


class PeerOfProcess(Protocol):
    """A peer of this host."""

    def __init__(self) -> None: ...

    def gate(self, name: str, k: int, protocol: str | None) -> Any: ...


class Nothing:
    """What closing an unused gate has to do: threads ignore it, tasks await it."""

    def __await__(self) -> Iterator[Any]:
        return iter(())


NOTHING = Nothing()


class OnFirstUse:
    """Stands for a gate of this host, which it opens when something is asked of it: for threads, or for tasks, whose
    gates return coroutines. It depends on the kind of peer."""

    protocol = "room"

    def __init__(self, kind: type[PeerOfProcess], name: str, k: int) -> None:
        """Raises BadInput if there can be no such gate."""
        check_gate(name, k)
        self.kind = kind
        self.name = name
        self.asked_k = k
        self.peer: PeerOfProcess | None = None  # through which it was opened
        self.closed_in = 0  # the process that closed it last
        self.gate: Any = None

    def opened(self) -> Any:
        """The gate, as threads or tasks use it; it is opened now, unless it is already."""
        peer = peers.get(self.kind) or peers.setdefault(self.kind, self.kind())
        if self.peer is not peer:
            self.check_not_closed()
            self.gate = peer.gate(self.name, self.asked_k, None)
            self.peer = peer
            self.check_not_closed()  # by another thread meanwhile
        return self.gate

    def check_not_closed(self) -> None:
        if self.is_closed:
            self.peer = None
            raise GateClosed(f"gate {self.name} was closed")

    @property
    def is_closed(self) -> bool:
        """In this process."""
        return self.closed_in == os.getpid()

    @property
    def is_open(self) -> bool:
        """In this process."""
        return self.peer is not None and self.peer is peers.get(self.kind)

    @property
    def k(self) -> int:
        return int(self.gate.k) if self.is_open else self.asked_k

    def state(self) -> str:
        if self.is_open:
            return str(self.gate.state())
        return "closed" if self.is_closed else "not opened yet"

    def acquire(self, timeout: float | None, n: int, lease: float | None, note: str) -> Any:
        return self.opened().acquire(timeout, n, lease, note)

    def requests(self) -> Any:
        return self.opened().requests()

    def holders_now(self) -> Any:
        return self.opened().holders_now()

    def statistics(self) -> Any:
        return self.opened().statistics()

    def resize(self, k: int) -> Any:
        return self.opened().resize(k)

    def close(self) -> Any:
        """It opens nothing."""
        self.closed_in = os.getpid()
        return self.gate.close() if self.is_open else NOTHING

    def __reduce__(self) -> tuple[object, ...]:
        return OnFirstUse, (self.kind, self.name, self.asked_k)


peers: dict[type[PeerOfProcess], PeerOfProcess] = {}  # of this process; room.py closes what they have open at its end
os.register_at_fork(after_in_child=peers.clear)
