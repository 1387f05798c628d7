"""One identity at its home: the messages about it, what it holds back, and the outbox of its node (see homes.py)."""

from fairgate.core.declare import Id, Place, message
from fairgate.core.ids import NIL
from fairgate.core.keyed import Keyed
from fairgate.core.keyspace import place_of
from fairgate.core.layers import Through
from fairgate.core.message import Key, Message, decode
from fairgate.core.node import Node

Stamp = tuple[int, int, int]  # term, distance of the home from the identity's place, count of the state
Grant = tuple[int, int, int]  # request, slot, fence
Kept = tuple[Stamp, int, Key]  # a copy: its stamp, the client's request (NIL: none), the identity's state


@message("hm.mail")
class Mail(Keyed):
    """A message between identities; `target` is the place of the identity `to`."""

    sender: Id
    to: Id
    inner: Message

    def tokens(self) -> int:
        return self.inner.tokens()

    def coordinators(self) -> int:
        return self.inner.coordinators()


@message("hm.copy")
class Copy(Message):
    """Keep this state of the identity: I am its home."""

    identity: Id
    term: int
    distance: Place
    count: int
    request: int
    state: Key


@message("hm.copied")
class Copied(Message):
    """I keep the state of the identity with this count, or a newer one."""

    identity: Id
    term: int
    count: int


@message("hm.discard")
class Discard(Message):
    """Discard your copy of the identity if it is not newer than this: you are no longer one of its backups."""

    identity: Id
    term: int
    distance: Place
    count: int


@message("hm.fetch")
class Fetch(Message):
    """Do you have a copy of the identity? I have to serve it."""

    identity: Id


@message("hm.fetched")
class Fetched(Message):
    """Answer to Fetch: my copy of the identity; without one, the term is NIL."""

    identity: Id
    term: int
    distance: Place
    count: int
    request: int
    state: Key


class Held:
    """What a step said: it leaves when the backups have acknowledged the state with this count."""

    def __init__(self, count: int, mails: list[Mail], grant: Grant | None) -> None:
        self.count = count
        self.mails = mails
        self.grant = grant

    def key(self) -> Key:
        return (self.count, tuple([mail.key() for mail in self.mails]), self.grant or ())

    @classmethod
    def from_key(cls, key: Key) -> "Held":
        count, mails, grant = key
        return cls(count, [as_mail(mail) for mail in mails], tuple(grant) or None)


class Home:
    """An identity that lives at this peer."""

    def __init__(self, identity: int, term: int) -> None:
        self.identity = identity
        self.place = place_of(identity)
        self.term = term
        self.count = 0  # of states after which something is held back, and of changes of the backups
        self.copied = NIL  # the count of the latest state that was copied to all backups
        self.request = NIL  # of the client, waiting or inside
        self.acknowledged: dict[int, int] = {}  # backup -> the latest count that it has acknowledged
        self.held: list[Held] = []
        self.mails: list[Mail] = []  # of the step that is running
        self.grant: Grant | None = None  # likewise
        self.node: Node

    def key(self, now: int) -> Key:
        self.node.now = now  # the node's key contains times as time left
        held = tuple([held.key() for held in self.held])
        acknowledged = tuple(sorted(self.acknowledged.items()))
        node = self.node.key()
        return (self.identity, self.term, self.count, self.copied, self.request, acknowledged, held, node)


class HomeDoor(Through):
    """The outbox of an identity's node: `Homes` decides when its messages and grants leave."""

    def __init__(self, homes: Node, home: Home) -> None:
        Through.__init__(self, homes, f"{home.identity}/")
        self.home = home

    def send(self, dst: int, msg: Message) -> None:
        self.home.mails.append(Mail(0, place_of(dst), self.home.identity, dst, msg))

    def granted(self, request: int, slot: int, fence: int) -> None:
        self.home.grant = (request, slot, fence)


def as_mail(key: Key) -> Mail:
    mail = decode(tuple(key))
    assert isinstance(mail, Mail)
    return mail
