"""Clusters for threads: what sync.py needs of one."""

from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError
from typing import Any, TypeVar

from fairgate.arguments import lease_time
from fairgate.errors import GateClosed
from fairgate.live.cluster_permit import TRY_SECONDS, BaseClusterGate, HeldTicket, describe, in_order, make_engine
from fairgate.live.engine import LiveEngine
from fairgate.live.ticket import WAITING, Ticket
from fairgate.live.waiter import ThreadWaiter
from fairgate.request import Request

T = TypeVar("T")
FirstGate = tuple[str, int, str | None]  # name, k and protocol


class ClusterPeer:
    def __init__(
        self, seeds: tuple[str, ...], journal: str | None, network: dict[str, Any], first: FirstGate | None = None
    ) -> None:
        """Returns once this process is a peer, with a seat at the first gate if that is given."""
        self.engine = make_engine(seeds, journal, network)
        if first is not None:
            self.gate(*first)
        self.engine.start()

    def describe(self) -> str:
        return describe(self.engine)

    def gate(self, name: str, k: int, protocol: str | None) -> "ClusterGate":
        return ClusterGate(self.engine, name, k, protocol)

    def close(self) -> None:
        self.engine.close()


class ClusterGate(BaseClusterGate):
    def acquire(self, timeout: float | None, n: int, lease: float | None, note: str) -> HeldTicket | None:
        self.check_single(n)
        if timeout is not None and timeout <= 0:
            if len(self.requests()) >= self.k:
                return None
            timeout = TRY_SECONDS
        again = None
        try:
            if lease is None and (again := self.engine.retake(self.gate, note)) is not None:
                return HeldTicket(self.engine, self.gate, again)
        except BaseException:
            if again is not None:
                self.engine.release(self.gate, again)
            raise
        waiter = ThreadWaiter(self.engine.transport.reader)
        ticket = Ticket(waiter.wake, lease_time(lease), note)
        try:
            held = HeldTicket(self.engine, self.gate, ticket)
            self.engine.of_user(self.gate, self.gate.acquire, ticket)
            if ticket.state == WAITING:
                waiter.wait(ticket, timeout)
                if ticket.state == WAITING:
                    self.engine.release(self.gate, ticket)
            granted = self.is_granted(ticket)
        except BaseException:  # Ctrl-C: nobody would ever release it
            self.engine.release(self.gate, ticket)
            raise
        return held if granted else None

    def requests(self) -> list[Request]:
        return in_order(on_loop(self.engine, self.engine.people, self.gate.name))

    def resize(self, k: int) -> None:
        self.refuse_resize()

    def close(self) -> None:
        if not self.gate.closed:
            on_loop(self.engine, self.engine.close_gate, self.gate)


def on_loop(engine: LiveEngine, work: Callable[..., Coroutine[Any, Any, T]], *args: Any) -> T:
    """Runs `work` on the engine's loop and waits for it. GateClosed if the peer is closed meanwhile."""
    future = engine.await_on_loop(work, *args)
    try:
        return future.result()
    except CancelledError:
        raise GateClosed(engine.closed) from None
