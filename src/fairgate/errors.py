"""The exceptions that fairgate raises.

Every message is one line that says what is wrong, with which value, and where possible what to do about it.
"""

TYPE_CHECKING = False  # importing `typing` would double the start-up time of `fairgate run`
if TYPE_CHECKING:
    from fairgate.request import Request


class FairgateError(Exception):
    """Base class of all fairgate errors."""


class BadInput(FairgateError, ValueError):
    """An argument, a file or the environment is not usable, for example an unknown protocol or a missing directory.

    The command line prints the message and exits with code 2, without a traceback.
    """


class BadDeclaration(BadInput, TypeError):
    """A class that declares a message, a record or a node of a protocol is wrong."""


class KMismatch(BadInput):
    """The gate is already open with a different k.

    Attributes:
        gate: The name of the gate.
        asked: The k that was requested.
        found: The k that the gate is open with.
    """

    def __init__(self, gate: str, asked: int, found: int) -> None:
        super().__init__(f"gate {gate} is open with k={found}, not k={asked}: everyone must give the same k")
        self.gate = gate
        self.asked = asked
        self.found = found

    def __reduce__(self) -> "tuple[type[KMismatch], tuple[str, int, int]]":
        """For pools of processes, which send exceptions to the caller."""
        return KMismatch, (self.gate, self.asked, self.found)


class GateClosed(FairgateError):
    """The gate or the peer was closed, so it can no longer be used to enter."""


class GateStuck(FairgateError):
    """The file of the gate has been locked for a long time, by a process that is stopped and cannot be continued.

    The message names it. Locks are held for a few microseconds, so this takes a stop at an unlucky moment.
    """


class PermitLost(FairgateError):
    """The permit is no longer valid, and another holder may have its slot: stop using the protected resource."""


class AcquireTimeout(FairgateError, TimeoutError):
    """No permit was granted within the timeout.

    Attributes:
        holders: Those who were inside then, as far as they were known without asking anybody: in a cluster only those
            of this peer, or of this host for its guests. The message names the first three.
    """

    def __init__(self, message: str, holders: "list[Request] | None" = None) -> None:
        super().__init__(message)
        self.holders = holders or []


class ReentrantCall(FairgateError, RuntimeError):
    """A signal handler used a gate in the middle of a change of the same gate by the same thread, or in the middle of
    any call of the same peer of a cluster.

    On one host, a handler can then release permits and close the gate, which is done after the change. It can do
    anything else if it sets a flag, or starts a thread.
    """


class ForkedPeer(FairgateError):
    """A forked child used a peer of its parent process. The child has to join by itself."""
