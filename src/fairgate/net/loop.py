"""The event loop of a peer: uvloop if it is installed (`pip install fairgate[uvloop]`), otherwise asyncio's own."""

import asyncio
import os
from importlib.util import find_spec

HAS_UVLOOP = find_spec("uvloop") is not None


def new_loop(fast: bool | None = None) -> asyncio.AbstractEventLoop:
    """A uvloop loop if `fast`. By default uvloop is used if it is installed and FAIRGATE_ASYNCIO is not set."""
    if fast is None:
        fast = HAS_UVLOOP and not os.environ.get("FAIRGATE_ASYNCIO")
    if not fast:
        return asyncio.new_event_loop()
    import uvloop  # noqa: PLC0415 (optional dependency)

    return uvloop.new_event_loop()
