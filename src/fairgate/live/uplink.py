"""What a gate needs of its peer at every step: who we are, what time it is, and the way to other peers and to users.

A class of its own so that compiled gates call it without a detour; traffic.py has the one there is.
"""

from typing import Any

from fairgate.core.ids import NIL
from fairgate.core.message import Message


class Uplink:
    def __init__(self) -> None:
        self.me = NIL  # until it is known
        self.now = 0  # ns, of the step that is being taken

    def send(self, host: int, gate: str, dst: int, src: int, msg: Message) -> None:
        raise NotImplementedError

    def tell(self, gate: Any, ticket: Any) -> None:
        """Its user, that it was let in."""
        raise NotImplementedError
