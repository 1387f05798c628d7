"""fairgate for threads: `api.py` with `with` instead of `async with`.

    from fairgate import sync

    with sync.join() as peer:
        with peer.semaphore("gpu", k=3) as permit:
            ...                                     # permit.lost says if it is no longer good

A thread cannot be stopped from outside, so a permit that is lost does not end the body: look at `permit.lost`, or call
`permit.check()` before whatever must not happen outside. `with` raises PermitLost at its end then.
"""

import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError
from types import TracebackType
from typing import Any, Self, TypeVar

from fairgate.errors import AcquireTimeout, GateClosed, PermitLost
from fairgate.live.choose import choose_journals, choose_membership
from fairgate.live.engine import LiveEngine
from fairgate.live.permit import TRY_SECONDS, BaseLost, BasePermit, BaseSemaphore, nanoseconds
from fairgate.live.report import Person
from fairgate.live.ticket import INSIDE, LOST, WAITING, Ticket
from fairgate.live.waiter import ThreadWaiter

T = TypeVar("T")


class Lost(BaseLost["Permit"]):
    """Is the permit lost? `if permit.lost`, or `permit.lost.wait(seconds)`."""

    def wait(self, timeout: float | None = None) -> bool:
        waiter = ThreadWaiter()
        with self.permit.engine.user_lock:
            self.permit.ticket.wake = waiter.wake
        waiter.wait(self, timeout)
        return self.is_set()

    def is_over(self) -> bool:
        """The waiting."""
        return self.is_set()


class Permit(BasePermit):
    __slots__ = ()

    @property
    def lost(self) -> Lost:
        return Lost(self)

    def __enter__(self) -> Self:
        self.check()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        lost = self.ticket.state == LOST
        try:
            self.release()
        except KeyboardInterrupt:
            self.release()  # it may not have begun
            raise
        if lost and error is None:
            raise PermitLost(f"the permit of gate {self.gate.name} was lost: {self.ticket.why}")


class Semaphore(BaseSemaphore):
    """A gate that lets k in. Many threads of many processes can wait at it; each has its own turn."""

    def __init__(self, engine: LiveEngine, name: str, k: int, protocol: str | None = None) -> None:
        super().__init__(engine, name, k, protocol)
        self.permits = threading.local()

    def acquire(self, timeout: float | None = None, lease: float | None = None, note: str = "") -> Permit | None:
        """A permit; None if `timeout` seconds went by first. A `lease` limits how long the permit is good."""
        again = None
        try:
            if lease is None and (again := self.engine.retake(self.gate, note)) is not None:
                return Permit(self.engine, self.gate, again)
        except BaseException:
            if again is not None:
                self.engine.release(self.gate, again)
            raise
        waiter = ThreadWaiter(self.engine.transport.reader)
        ticket = Ticket(waiter.wake, nanoseconds(lease, "lease"), note)
        try:
            permit = Permit(self.engine, self.gate, ticket)
            self.engine.of_user(self.gate, self.gate.acquire, ticket)
            if ticket.state == WAITING:
                waiter.wait(ticket, timeout)
                if ticket.state == WAITING:
                    self.engine.release(self.gate, ticket)
        except BaseException:  # Ctrl-C: nobody would ever release it
            self.engine.release(self.gate, ticket)
            raise
        if ticket.error is not None:
            raise ticket.error
        if ticket.state == LOST:
            raise PermitLost(f"the permit of gate {self.name} was lost at once: {ticket.why}")
        return permit if ticket.state == INSIDE else None

    def try_acquire(self, lease: float | None = None, note: str = "") -> Permit | None:
        """A permit if a slot is free and nobody waits for it, else None; not later than a moment."""
        if len(self.people()) >= self.k:
            return None
        return self.acquire(TRY_SECONDS, lease, note)

    def hold(self, timeout: float | None = None, lease: float | None = None, note: str = "") -> Permit:
        """`with gate.hold(timeout=5, lease=60) as permit`: AcquireTimeout if nobody lets us in in time."""
        permit = self.acquire(timeout, lease, note)
        if permit is None:
            raise AcquireTimeout(f"gate {self.name} did not let us in within {timeout:g} s")
        return permit

    def __enter__(self) -> Permit:
        permit = self.acquire()
        assert permit is not None, "without a timeout there is no end without a permit"
        try:
            self.stack().append(permit)
        except BaseException:
            permit.release()
            raise
        return permit

    def stack(self) -> list[Permit]:
        """What this thread holds of it."""
        try:
            held: list[Permit] = self.permits.stack
        except AttributeError:
            held = self.permits.stack = []
        return held

    def __exit__(self, *how: Any) -> None:
        permit: Permit = self.permits.stack.pop()
        permit.__exit__(*how)

    def people(self) -> list[Person]:
        return on_loop(self.engine, self.engine.people, self.name)

    def holders(self) -> list[Person]:
        """Who is inside, by slot."""
        return sorted([one for one in self.people() if one.inside], key=lambda one: (one.slot, one.since))

    def waiters(self) -> list[Person]:
        """Who waits, the longest first."""
        return sorted([one for one in self.people() if not one.inside], key=lambda one: one.since)

    def locked(self) -> bool:
        return len(self.holders()) >= self.k

    def close(self) -> None:
        """This process leaves the gate; the others go on."""
        if not self.gate.closed:
            on_loop(self.engine, self.engine.close_gate, self.gate)


class Peer:
    """This process among the others, from `join()` until `close()` or the end of `with`."""

    def __init__(self, engine: LiveEngine) -> None:
        self.engine = engine

    def semaphore(self, name: str, k: int, protocol: str | None = None) -> Semaphore:
        return Semaphore(self.engine, name, k, protocol)

    def lock(self, name: str, protocol: str | None = None) -> Semaphore:
        return Semaphore(self.engine, name, 1, protocol)

    def close(self) -> None:
        self.engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *how: object) -> None:
        self.close()


def join(*seeds: str, journal: str | None = None, **network: Any) -> Peer:
    """As `fairgate.join`."""
    engine = LiveEngine(choose_membership(seeds, network), choose_journals(journal))
    engine.start()
    return Peer(engine)


def on_loop(engine: LiveEngine, work: Callable[..., Coroutine[Any, Any, T]], *args: Any) -> T:
    """Work for the engine's own loop, waited for here."""
    future = engine.await_on_loop(work, *args)
    try:
        return future.result()
    except CancelledError:
        raise GateClosed(engine.closed) from None
