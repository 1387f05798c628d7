"""A peer that stands at gates without wanting in: it keeps them open, and hosts what is nobody's."""

import asyncio

from fairgate.live.engine import LiveEngine
from fairgate.net.roster import Sit


def keep_open(engine: LiveEngine, name: str, k: int, protocol: str) -> None:
    """A seat at this gate, from which nobody asks. BadInput if it is open with another k or protocol."""
    gate = engine.gate(name, k, protocol)
    with engine.user_lock:
        ident = gate.new_seat()
    sit = engine.change(Sit(name, k, protocol, engine.me, (ident,)))
    asyncio.run_coroutine_threadsafe(sit, engine.loop).result()
