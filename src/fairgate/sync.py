"""The API of fairgate for threads: the same as the asyncio API (api.py), with `with` instead of `async with`.

    from fairgate import sync

    with sync.join() as peer:
        with peer.semaphore("gpu", k=3) as permit:
            ...                                     # permit.lost is true once the permit was lost

A thread cannot be cancelled, so losing the permit does not end the body. Test `permit.lost`, or call `permit.check()`
right before anything that only a holder may do. If the permit was lost, `with` raises PermitLost when the body ends.
"""

import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError
from types import TracebackType
from typing import Any, Self, TypeVar

from fairgate.errors import AcquireTimeout, GateClosed, PermitLost
from fairgate.live.arguments import check_request, lease_time
from fairgate.live.choose import choose_journals, choose_membership
from fairgate.live.engine import LiveEngine
from fairgate.live.permit import TRY_SECONDS, BaseLost, BasePermit, BaseSemaphore
from fairgate.live.report import Person
from fairgate.live.ticket import INSIDE, LOST, WAITING, Ticket
from fairgate.live.waiter import ThreadWaiter

T = TypeVar("T")


class Lost(BaseLost["Permit"]):
    """Whether a permit was lost: test it with `if permit.lost`, or wait with `permit.lost.wait(seconds)`."""

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the permit is lost.

        Args:
            timeout: How many seconds to wait; None waits forever, even if the permit is released meanwhile.

        Returns:
            True if the permit was lost, False if the timeout passed first.
        """
        waiter = ThreadWaiter()
        with self.permit.engine.user_lock:
            self.permit.ticket.wake = waiter.wake
        waiter.wait(self, timeout)
        return self.is_set()

    def is_over(self) -> bool:
        """Whether `wait` is done."""
        return self.is_set()


class Permit(BasePermit):
    """The right to be inside a gate, from `Semaphore.acquire` until `release`.

    As a context manager it releases itself at the end of the body. A permit is lost when its lease expires, its peer
    or gate is closed, or somebody revokes it with `fairgate break`.

    Example:
        ```python
        with gpu.hold(lease=60) as permit:
            train(device=permit.slot)
            permit.check()  # raises PermitLost instead of saving with an expired lease
            save(fence=permit.fence)
        ```
    """

    __slots__ = ()

    @property
    def lost(self) -> Lost:
        """True in a boolean context once the permit was lost; `permit.lost.wait()` waits for that."""
        return Lost(self)

    def __enter__(self) -> Self:
        """Enter the body. PermitLost if the permit is already invalid."""
        self.check()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Release the permit. PermitLost if it was lost, unless the body raised an exception of its own."""
        lost = self.ticket.state == LOST
        try:
            self.release()
        except KeyboardInterrupt:
            self.release()  # the first call may not have started
            raise
        if lost and error is None:
            raise PermitLost(f"the permit for gate {self.gate.name} was lost: {self.ticket.why}")


class Semaphore(BaseSemaphore):
    """A gate that grants at most k permits at a time, to any number of threads in any number of processes.

    Created by `Peer.semaphore` and `Peer.lock`. `with semaphore as permit` waits for a permit without a timeout and
    releases it at the end of the body. It raises what `acquire` raises, and PermitLost if the permit was lost.
    """

    def __init__(self, engine: LiveEngine, name: str, k: int, protocol: str | None = None) -> None:
        super().__init__(engine, name, k, protocol)
        self.permits = threading.local()

    def acquire(self, timeout: float | None = None, lease: float | None = None, note: str = "") -> Permit | None:
        """Wait for a permit. Ctrl-C during the wait withdraws the request.

        Args:
            timeout: How many seconds to wait; None waits forever.
            lease: How many seconds the permit is valid for, see `Permit.extend`; None means until it is released.
            note: A remark that `fairgate who` shows beside the request.

        Returns:
            The permit, which the caller must release; None if the timeout passed first.

        Raises:
            KMismatch: Other peers have this gate open with a different k.
            BadInput: An argument is invalid, the gate runs another protocol elsewhere, or the membership of the gate
                cannot be changed at present (a full disk, for example).
            GateClosed: The gate or the peer is closed, or was closed during the wait.
            PermitLost: The permit was lost before this call could return it.
            ForkedPeer: The peer belongs to the parent process.

        Example:
            ```python
            if permit := gpu.acquire(timeout=5):
                with permit:
                    ...
            ```
        """
        if timeout is not None or note != "":
            check_request(timeout, note)
        again = None
        try:
            if lease is None and (again := self.engine.retake(self.gate, note)) is not None:
                return Permit(self.engine, self.gate, again)
        except BaseException:
            if again is not None:
                self.engine.release(self.gate, again)
            raise
        waiter = ThreadWaiter(self.engine.transport.reader)
        ticket = Ticket(waiter.wake, lease_time(lease), note)
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
            raise PermitLost(f"the permit for gate {self.name} was lost as soon as it was granted: {ticket.why}")
        return permit if ticket.state == INSIDE else None

    def try_acquire(self, lease: float | None = None, note: str = "") -> Permit | None:
        """Get a permit only if a slot is free and nobody is waiting for it.

        All peers with the gate open are asked first. If a slot is free, the call waits at most 1 s for it.

        Returns:
            The permit; None if the gate is full, or if another request was faster.

        Raises:
            FairgateError: As for `acquire`.
        """
        if len(self.people()) >= self.k:
            return None
        return self.acquire(TRY_SECONDS, lease, note)

    def hold(self, timeout: float | None = None, lease: float | None = None, note: str = "") -> Permit:
        """Like `acquire`, but a timeout is an error: `with gpu.hold(timeout=5, lease=60) as permit`.

        Raises:
            AcquireTimeout: The timeout passed without a permit.
            FairgateError: As for `acquire`.
        """
        permit = self.acquire(timeout, lease, note)
        if permit is None:
            raise AcquireTimeout(f"timed out waiting for gate {self.name} ({timeout:g} s)")
        return permit

    def __enter__(self) -> Permit:
        permit = self.acquire()
        assert permit is not None, "acquire() without a timeout returns a permit or raises"
        try:
            self.stack().append(permit)
        except BaseException:
            permit.release()
            raise
        return permit

    def stack(self) -> list[Permit]:
        """The permits of this gate that this thread holds by `with`, innermost last."""
        try:
            held: list[Permit] = self.permits.stack
        except AttributeError:
            held = self.permits.stack = []
        return held

    def __exit__(self, *how: Any) -> None:
        permit: Permit = self.permits.stack.pop()
        permit.__exit__(*how)

    def people(self) -> list[Person]:
        """Everyone at this gate, on all peers: holders and waiters, in no particular order.

        Peers that do not answer within 2 s are left out.

        Raises:
            GateClosed: The peer is closed.
            BadInput: The list of peers cannot be read.
            ForkedPeer: The peer belongs to the parent process.
        """
        return on_loop(self.engine, self.engine.people, self.name)

    def holders(self) -> list[Person]:
        """The holders of permits, ordered by slot. Raises what `people` raises."""
        return sorted([one for one in self.people() if one.inside], key=lambda one: (one.slot, one.since))

    def waiters(self) -> list[Person]:
        """The waiting requests, longest wait first. Raises what `people` raises."""
        return sorted([one for one in self.people() if not one.inside], key=lambda one: one.since)

    def locked(self) -> bool:
        """True if all k permits are held. Raises what `people` raises."""
        return len(self.holders()) >= self.k

    def close(self) -> None:
        """Leave the gate. Other processes are not affected; closing twice is a no-op.

        Requests of this process that are waiting end with GateClosed, and permits that it holds are lost.
        """
        if not self.gate.closed:
            on_loop(self.engine, self.engine.close_gate, self.gate)


class Peer:
    """This process as a member of the group of peers that share gates, from `join` until `close`.

    As a context manager it closes itself at the end of the body.
    """

    def __init__(self, engine: LiveEngine) -> None:
        self.engine = engine

    def semaphore(self, name: str, k: int, protocol: str | None = None) -> Semaphore:
        """Open a gate. Gates with the same name are the same gate for all peers.

        This sends nothing yet: whether other peers use the same k and protocol is checked by the first request.

        Args:
            name: The name of the gate, 1 to 200 printable characters.
            k: How many permits the gate grants at a time, 1 to 1000.
            protocol: The protocol to run, a name from `fairgate protocols`; None chooses a suitable one.

        Raises:
            KMismatch: This process already uses the gate with a different k.
            BadInput: The name or k is invalid, or the protocol is unknown, cannot run live, does not support this k,
                or differs from the one that this process already uses for the gate.
            GateClosed: The peer is closed.
            ForkedPeer: The peer belongs to the parent process.

        Example:
            ```python
            gpu = peer.semaphore("gpu", k=3)
            with gpu as permit:
                train(device=permit.slot)
            ```
        """
        return Semaphore(self.engine, name, k, protocol)

    def lock(self, name: str, protocol: str | None = None) -> Semaphore:
        """A semaphore with k=1. See `semaphore`."""
        return Semaphore(self.engine, name, 1, protocol)

    def close(self) -> None:
        """Leave. Waiting requests end with GateClosed and held permits are lost. Closing twice is a no-op."""
        self.engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *how: object) -> None:
        self.close()


def join(*seeds: str, journal: str | None = None, **network: Any) -> Peer:
    """Make this process a peer, of this host or of a cluster of several hosts. Blocks until it is one.

    Takes the arguments of `fairgate.join`.

    Returns:
        The peer: close it, or use it with `with`.

    Raises:
        BadInput: The runtime directory or an address is not usable, or no peer of the cluster let this one join
            within `join_timeout` seconds.

    Example:
        ```python
        with sync.join() as peer, peer.lock("report") as permit:
            ...
        ```
    """
    engine = LiveEngine(choose_membership(seeds, network), choose_journals(journal))
    engine.start()
    return Peer(engine)


def on_loop(engine: LiveEngine, work: Callable[..., Coroutine[Any, Any, T]], *args: Any) -> T:
    """Runs `work` on the engine's loop and waits for it. GateClosed if the peer is closed meanwhile."""
    future = engine.await_on_loop(work, *args)
    try:
        return future.result()
    except CancelledError:
        raise GateClosed(engine.closed) from None
