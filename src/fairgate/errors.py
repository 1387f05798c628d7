"""What can go wrong, each in one line that says what it was and what to do."""


class FairgateError(Exception):
    """All of them."""


class BadInput(FairgateError, ValueError):
    """A person did something wrong. The command line ends with this text and exit code 2, never a traceback."""


class KMismatch(BadInput):
    """A gate is open with another k."""

    def __init__(self, gate: str, asked: int, found: int) -> None:
        super().__init__(f"gate {gate} lets {found} in, and you asked for {asked}: all its peers must say the same k")
        self.gate = gate
        self.asked = asked
        self.found = found


class GateClosed(FairgateError):
    """The gate, or the peer, was closed: nobody gets in by it any more."""


class PermitLost(FairgateError):
    """The permit is no longer good: another may be inside in its place."""


class AcquireTimeout(FairgateError, TimeoutError):
    """Nobody let us in in time."""


class ForkedPeer(FairgateError):
    """A child process uses the peer of its parent."""
