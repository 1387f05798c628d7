"""Base classes for the messages of protocols on an overlay (core/kbr.py)."""

from fairgate.core.declare import Place, message
from fairgate.core.message import Message


@message()
class Gated(Message):
    """A message about one gate."""

    gate: int


@message()
class Keyed(Gated):
    """A message about one gate, addressed to the owner of the key `target`."""

    target: Place
