"""Messages between seats of one peer. They are delivered within the step that caused them."""

import logging
from collections import deque

from fairgate.core.message import Message
from fairgate.live.gate import LiveGate

MOST = 10_000  # in one step; more are allowed for many seats

LocalMessages = deque[tuple[str, int, int, Message]]  # gate, receiver, sender, message

log = logging.getLogger("fairgate.live")


def deliver(messages: LocalMessages, gates: dict[str, LiveGate]) -> None:
    """Delivers the messages, and those that they cause. A forged message can cause an endless exchange, which ends the
    state of that gate: it gets a new view."""
    count = 0
    while messages:
        name, dst, src, msg = messages.popleft()
        gate = gates[name]
        count += 1
        if count > MOST + len(gate.nodes) ** 3:
            messages.clear()
            gate.spoil(RuntimeError("messages between its seats here do not end"))
            return
        try:
            gate.on_message(dst, src, msg)
        except Exception as wrong:  # the gate has dealt with it (LiveGate.spoil)
            log.debug("gate %s: a message between its seats here failed: %s", name, wrong)
