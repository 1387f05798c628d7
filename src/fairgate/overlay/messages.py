"""The messages by which overlay nodes maintain their tables. What they carry for others is Keyed (core/keyed.py)."""

from typing import Annotated

from fairgate.core.declare import Id, Ids, Place, message
from fairgate.core.message import Key, Message

Bound = Annotated[Place, "object"]  # a Python integer in C too, since bound + 1 may need 65 bits


@message()
class Upkeep(Message):
    """A message of the overlay itself, about its tables rather than about gates."""


@message("ov.lookup")
class Lookup(Upkeep):
    """Who owns the key `target`? Sent by `asker`, for its tables (`upkeep`) or for what it carries."""

    target: Place
    asker: Id
    upkeep: bool
    hops: int


@message("ov.found")
class Found(Upkeep):
    """Answer to Lookup by the owner: I own `target`. The lookup took `hops` hops; `names` are nodes near me."""

    target: Place
    upkeep: bool
    hops: int
    names: Ids


@message("ov.estate")
class Estate(Upkeep):
    """You own the keys from `first` to `last`: here is their title, and the state that belongs to them."""

    number: int  # counts the estates that the sender has given away
    first: Bound
    last: Bound
    heirlooms: Key


@message()
class Said(Upkeep):
    """A message that also says whether its sender is on the ring."""

    member: bool


@message("ov.ping")
class Ping(Said):
    """Are you alive?"""


@message("ov.pong")
class Pong(Said):
    """I am alive."""


@message("ov.ask")
class Ask(Said):
    """Who are your neighbours?"""


@message("ov.leaving")
class Leaving(Upkeep):
    """I am leaving the ring: forget me."""


@message("cd.tell")
class Tell(Upkeep):
    """Chord: these are my predecessor and my successors."""

    predecessor: Id
    successors: Ids


@message("cd.notify")
class Notify(Upkeep):
    """Chord: I think that I am your predecessor; my own predecessor is `behind`."""

    behind: Id


@message("cd.changed")
class Changed(Upkeep):
    """Chord: my neighbours have changed, so ask me again."""


@message("pa.names")
class Names(Upkeep):
    """Pastry: I know these nodes."""

    names: Ids
