"""fairgate: fair distributed locks and k-semaphores with no server.

The names exported here are the asyncio API; `fairgate.sync` is the same API for threads.

Set `FAIRGATE_PURE=1` to import the plain Python files even where compiled modules exist: to debug, to profile, to
compare the two, or to run mutation tests (compiled classes cannot be patched).
"""

import os
import sys

TYPE_CHECKING = False  # importing `typing` would double the start-up time of `fairgate run`
if TYPE_CHECKING:
    from typing import Any

    from fairgate.api import Peer, Permit, Semaphore, join, lock, semaphore
    from fairgate.errors import (
        AcquireTimeout,
        BadInput,
        FairgateError,
        ForkedPeer,
        GateClosed,
        GateStuck,
        KMismatch,
        PermitLost,
        ReentrantCall,
    )

__version__ = "0.1.0"

if not getattr(sys, "_is_gil_enabled", lambda: True)():
    refusal = "fairgate needs the global interpreter lock: set PYTHON_GIL=1, or use a Python that has it"
    if os.path.basename(sys.argv[0]) == "fairgate" or (sys.argv[0] == "-m" and "fairgate" in sys.orig_argv):
        sys.stderr.write(f"fairgate: {refusal.removeprefix('fairgate ')}\n")  # this is the command: no traceback
        sys.exit(2)
    raise ImportError(refusal)

if os.environ.get("FAIRGATE_PURE"):
    from fairgate._pure import prefer_source

    prefer_source()

__all__ = [
    "AcquireTimeout", "BadInput", "FairgateError", "ForkedPeer", "GateClosed", "GateStuck", "KMismatch", "Peer",
    "Permit", "PermitLost", "ReentrantCall", "Semaphore", "join", "lock", "semaphore",
]  # fmt: skip
FROM_API = ("Peer", "Permit", "Semaphore", "join", "lock", "semaphore")
MODULES = ("lab", "sync")  # after `import fairgate`, as in `fairgate.sync.join()`


def __getattr__(name: str) -> "Any":
    """Import the API on first use: a simulation needs neither asyncio nor sockets."""
    from importlib import import_module  # noqa: PLC0415

    if name in MODULES:
        return import_module(f"fairgate.{name}")
    if name not in __all__:
        raise AttributeError(f"module 'fairgate' has no attribute {name!r}")
    return getattr(import_module("fairgate.api" if name in FROM_API else "fairgate.errors"), name)


def __dir__() -> list[str]:
    """For `dir`, `help` and completion: they would only see what has been imported already."""
    return sorted({*__all__, *MODULES, *[name for name in globals() if name.startswith("__")]})
