"""fairgate: fair distributed locks and k-semaphores with no server.

`FAIRGATE_PURE=1` makes this package import its plain Python files even where compiled ones lie
beside them: to debug, to profile, to compare, and to run mutants (C classes refuse patching).
"""

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fairgate.api import Peer, Permit, Semaphore, join
    from fairgate.errors import AcquireTimeout, BadInput, FairgateError, ForkedPeer, GateClosed, KMismatch, PermitLost

__version__ = "0.1.0"

if os.environ.get("FAIRGATE_PURE"):
    from fairgate._pure import prefer_source

    prefer_source()

__all__ = [
    "AcquireTimeout", "BadInput", "FairgateError", "ForkedPeer", "GateClosed", "KMismatch", "Peer", "Permit",
    "PermitLost", "Semaphore", "join",
]  # fmt: skip
FROM_API = ("Peer", "Permit", "Semaphore", "join")


def __getattr__(name: str) -> Any:
    """The API when it is first used: a simulation needs neither asyncio nor sockets."""
    from importlib import import_module  # noqa: PLC0415

    if name not in __all__:
        raise AttributeError(f"module 'fairgate' has no attribute {name!r}")
    return getattr(import_module("fairgate.api" if name in FROM_API else "fairgate.errors"), name)
