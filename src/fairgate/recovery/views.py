"""Agreed rosters: who is a member and what the members have in common, one version after the other.

Theory of operation. One `Views` per peer. `Ballots` chooses the versions, `Leases` bounds what an excluded member may
still do, `Changes` decides what the next version is. This module has the inputs of the driver, and decides which
messages are valid. What is agreed on is the business of two injected objects (recovery/agreed.py): a `Book` knows the
content of rosters, and an `Above` is told what happens.
"""

from fairgate.core.declare import node
from fairgate.core.ids import NIL
from fairgate.core.message import Key, Message
from fairgate.core.outbox import Outbox
from fairgate.core.setup import Setup
from fairgate.recovery.agreed import (
    MOST_CHANGES,
    Above,
    Accept,
    Accepted,
    Ask,
    Behind,
    Book,
    Change,
    Chosen,
    Introduce,
    Leave,
    Nack,
    Prepare,
    Promise,
    Versioned,
    check_value,
    ids,
    names,
)
from fairgate.recovery.changes import Changes


@node
class Views(Changes):
    """The driver's inputs, and which messages are believed."""

    def __init__(self, me: int, setup: Setup, out: Outbox, book: Book, above: Above) -> None:
        self.book = book
        self.above = above
        Changes.__init__(self, me, setup, out)

    # Inputs.

    def on_start(self) -> None:
        self.since = self.now
        self.answered = self.now
        if self.period:
            self.set_timer("beat", self.out.choose(8) * self.period // 8)
        self.watch()
        if self.value[1] == (self.me,):
            self.take_over()
            self.finish()

    def on_join(self, contact: int) -> None:
        """Join this peer's cluster. Set `about_me` and `standing` before. May be called again, for another contact."""
        if self.contact == NIL:
            self.asked = self.now  # whoever lets us in has heard us, and that was later
        self.contact = contact
        self.ask()

    def on_leave(self) -> None:
        """Leave. From here on this peer must hold nothing: those that hear of it do not wait for its lease."""
        self.gone = True
        self.until = 0
        self.pending = {}
        self.serve()
        self.finish()

    def change(self, change: Key) -> int:
        """Ask for a change. Returns its number; `above.applied` or `above.denied` follows."""
        self.last_change += 1
        self.pending[self.last_change] = change
        if self.joined:
            self.serve()
        self.finish()
        return self.last_change

    def busy(self, gates: tuple[str, ...]) -> None:
        """These are the gates whose census this peer leads and that is not over. To be called in each `adopted`."""
        news = gates != self.censuses or self.told < self.at
        self.censuses = gates
        self.beat_now(news and not self.is_ahead())

    def is_ahead(self) -> bool:
        """Has a version been chosen that `above` does not know yet? A beat would claim that it has no census in it."""
        return any(call == self.above.adopted for call, *_ in self.news)

    def on_suspect(self, peer: int, detector: str) -> None:
        news = peer not in self.suspected
        self.suspected.add(peer)
        self.beat_now(news)

    def on_trust(self, peer: int, detector: str) -> None:
        news = peer in self.suspected
        self.suspected.discard(peer)
        self.beat_now(news)

    def beat_now(self, news: bool) -> None:
        if news and self.joined:
            self.beat()
            self.finish()

    def on_timer(self, name: str) -> None:
        if name == "watch":
            self.take_over()
            self.watch()
        else:
            if self.period:
                self.set_timer("beat", self.period)
            self.serve()
            self.repeat()
            if self.joined:
                self.beat()
        self.finish()

    def watch(self) -> None:
        if self.patience:
            self.set_timer("watch", self.patience + self.out.choose(8) * self.patience // 8)

    # Messages.

    def on_message(self, src: int, msg: Message) -> None:
        """Raises ValueError if the message is not valid, or not from a peer that may send it; then nothing changes."""
        self.check(src, msg)
        if isinstance(msg, Versioned) and not isinstance(msg, Chosen):
            self.compare(src, msg)
        Changes.on_message(self, src, msg)
        self.finish()

    def finish(self) -> None:
        """Complete the step: take own messages first, then tell `above`, which may ask for more."""
        while self.own or self.news:
            if self.own:
                Changes.on_message(self, self.me, self.own.pop(0))
            else:
                call, *arguments = self.news.pop(0)
                call(*arguments)

    def compare(self, src: int, m: Versioned) -> None:
        """A peer that is behind is told, whatever it wrote about."""
        if m.at < self.at:
            self.tell(src, Chosen(self.at, self.value))
        elif m.at == self.at + 1 and isinstance(m, Accept) and m.ballot == self.accepted:
            self.follow(m.at, self.accepted_value)  # whoever leads goes on by the same ballot
        elif m.at > self.at:
            self.tell(src, Behind(self.at))

    def check(self, src: int, msg: Message) -> None:
        if isinstance(msg, Versioned) and msg.at < 0:
            raise ValueError(f"{msg.tag} has version {msg.at}")
        if isinstance(msg, Prepare | Accept) and msg.ballot[1] != src:
            raise ValueError(f"{msg.tag} from peer {src} has the ballot of peer {msg.ballot[1]}")
        if isinstance(msg, Accept | Promise) and (isinstance(msg, Accept) or msg.value[0]):
            check_value(msg.at + 1, msg.value)
        if isinstance(msg, Chosen):
            check_value(msg.at, msg.value)
        if isinstance(msg, Ask) and not is_in_order(msg.changes):
            raise ValueError(f"vw.ask must have 1 to {MOST_CHANGES} changes, numbered one after the other")
        if isinstance(msg, Versioned) and msg.at == self.at:
            self.check_sender(src, msg)

    def check_sender(self, src: int, msg: Versioned) -> None:
        """Of a message from a peer that knows the same version as this one."""
        if isinstance(msg, Prepare | Promise | Accept | Accepted | Nack) and src not in self.value[1]:
            raise ValueError(f"{msg.tag} from peer {src}, which is not a voter of version {self.at}")
        if isinstance(msg, Ask | Leave) and (src, msg.joined) not in names(self.value):
            raise ValueError(f"{msg.tag} from peer {src}, which is not a member of version {self.at}")
        if isinstance(msg, Introduce) and src not in ids(self.value):
            raise ValueError(f"{msg.tag} from peer {src}, which is not a member of version {self.at}")


def is_in_order(changes: tuple[Change, ...]) -> bool:
    numbers = [number for number, _ in changes]
    return 1 <= len(numbers) <= MOST_CHANGES and numbers == list(range(numbers[0], numbers[0] + len(numbers)))
