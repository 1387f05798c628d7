"""What a gate needs of its peer at every step: our id, the time, and how to reach other peers and users.

It is a class of its own so that compiled gates can call it directly; traffic.py has the implementation.
"""

from typing import Any

from fairgate.core.ids import NIL
from fairgate.core.message import Message


class Uplink:
    def __init__(self) -> None:
        self.me = NIL  # until it is known
        self.now = 0  # ns, at the start of the current step
        self.lease_until = 0  # ns: until when users may be inside; 0 if that is not limited

    def has_lease(self) -> bool:
        return self.lease_until == 0 or self.now < self.lease_until

    def send(self, host: int, gate: str, dst: int, src: int, msg: Message) -> None:
        raise NotImplementedError

    def tell(self, gate: Any, ticket: Any) -> None:
        """Notifies the user of a ticket that it was granted."""
        raise NotImplementedError
