"""A request, as `Semaphore.requests` and `AcquireTimeout` show it."""

from typing import NamedTuple


class Request(NamedTuple):
    """A request that is waiting or inside. Times are seconds since 1970.

    Attributes:
        inside: True for a holder, False for a waiter.
        slots: The slots of a holder; empty for a waiter, and if the protocol has no slots.
        fence: The fence of a holder, or None.
        pid: The process that made the request; 0 if it is unknown.
        host: The name of its host.
        since: When it entered, or when it began to wait.
        deadline: When the lease that a holder asked for expires; None if it has no lease.
        note: The remark given to `acquire`.
    """

    inside: bool
    slots: tuple[int, ...]
    fence: int | None
    pid: int
    host: str
    since: float
    deadline: float | None
    note: str

    @property
    def slot(self) -> int | None:
        """The lowest of its slots, or None."""
        return self.slots[0] if self.slots else None
