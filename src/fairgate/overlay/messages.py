"""What nodes of an overlay say to each other about their tables. What they carry is Keyed (core/keyed.py)."""

from typing import Annotated

from fairgate.core.declare import Id, Ids, Place, message
from fairgate.core.message import Key, Message

Bound = Annotated[Place, "object"]  # one past it may need 65 bits


@message()
class Upkeep(Message):
    """A message of the overlay itself: about tables, not about gates."""


@message("ov.lookup")
class Lookup(Upkeep):
    """Who owns the key `target`? The `asker` wants to know, for its tables (`upkeep`) or for what it carries."""

    target: Place
    asker: Id
    upkeep: bool
    hops: int


@message("ov.found")
class Found(Upkeep):
    """I do. It took so many hops, and these are nodes near me."""

    target: Place
    upkeep: bool
    hops: int
    names: Ids


@message("ov.estate")
class Estate(Upkeep):
    """You own the keys from `first` to `last`: here is their title, and what is in mind for them."""

    number: int  # of those that this node has given
    first: Bound
    last: Bound
    heirlooms: Key


@message()
class Said(Upkeep):
    """Also says whether its sender is on the ring."""

    member: bool


@message("ov.ping")
class Ping(Said):
    """Are you there?"""


@message("ov.pong")
class Pong(Said):
    """I am."""


@message("ov.ask")
class Ask(Said):
    """Who are your neighbours?"""


@message("ov.leaving")
class Leaving(Upkeep):
    """Forget me."""


@message("cd.tell")
class Tell(Upkeep):
    """Chord: my predecessor, and my successors."""

    predecessor: Id
    successors: Ids


@message("cd.notify")
class Notify(Upkeep):
    """Chord: I think that I am your predecessor; behind me is this one."""

    behind: Id


@message("cd.changed")
class Changed(Upkeep):
    """Chord: ask me again."""


@message("pa.names")
class Names(Upkeep):
    """Pastry: these I know."""

    names: Ids
