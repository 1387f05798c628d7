"""Titles: who serves a key while rings that learn disagree about who owns it.

While a ring changes, two nodes may both believe to own a key, or none. So a key has a *title*, which is at one node or
under way. Who owns a key by its tables and has not its title keeps what comes for it (`held`). Who has a title and does
not own the key any more gives it to who does, together with what its rider has in mind for the keys (`Estate`).
From there it goes on, if that was wrong: titles follow the owners. So no key is served twice, and what was known of it
moves with it.

A title is lost with the node that has it, or with the message. Whoever has owned a key for `overlay_wait` and has
not got its title makes a new one, with nothing in mind. That must be longer than a message and the repair of the ring
take; and with riders that lend for a time, as long as they lend: then all that the lost one lent is over. A node that
was taken for dead, and lives, may serve on as long as it believes to own the key: then there are two titles.
"""

from fairgate.core.ids import NIL
from fairgate.core.keyed import Keyed
from fairgate.core.layers import MakeNode
from fairgate.core.message import Key, decode
from fairgate.core.outbox import Outbox
from fairgate.core.setup import Setup
from fairgate.overlay.messages import Estate
from fairgate.overlay.overlay import Overlay
from fairgate.overlay.spans import Span, common, holds, spans_between, union, without

UPKEEP = 5_000_000_000  # ns: the option `overlay_upkeep`
PERIODS = 4  # of upkeep: how long a title is waited for, if the option `overlay_wait` does not say
REMEMBERED = 32  # estates that came last: links may double them
TITLE = "title"


class Titled(Overlay):
    def __init__(self, me: int, setup: Setup, out: Outbox, upper: MakeNode) -> None:
        self.period: int = setup.options.get("overlay_upkeep", UPKEEP)
        self.wait: int = setup.options.get("overlay_wait", PERIODS * self.period)
        self.titles: list[Span] = []
        self.missing: list[Span] = []  # what the timer is for
        self.held: list[tuple[int, Keyed]] = []  # (last hop, message)
        self.given = 0
        self.taken: list[tuple[int, int]] = []  # (from whom, number)
        Overlay.__init__(self, me, setup, out, upper)

    def is_there(self) -> bool:
        """Is it on the ring?"""
        raise NotImplementedError

    def heir(self, key: int) -> int:
        """Who owns this key, or knows better."""
        return self.next_hop(key)

    def arrive(self, src: int, msg: Keyed) -> None:
        if self.next_hop(msg.target) == NIL and not holds(self.titles, msg.target):
            self.out.note("a message waited for the title of its key")
            self.held.append((src, msg))
        else:
            Overlay.arrive(self, src, msg)

    def owned(self) -> list[Span]:
        if not self.is_there():
            return []
        start, end = self.own_range()
        return spans_between(start, end)

    def update_titles(self) -> None:
        """Whenever the range or the titles are others."""
        self.rider.now = self.now
        owned = self.owned()
        for span in without(self.titles, owned):
            self.give(span)
        self.await_titles(without(owned, self.titles))
        held = self.held
        self.held = []
        for src, msg in held:
            self.arrive(src, msg)

    def give(self, span: Span) -> None:
        first, last = span[0], span[1] - 1
        heir = self.heir(last)
        if heir != NIL:
            self.titles = without(self.titles, [span])
            self.given += 1
            self.out.send(heir, Estate(self.given, first, last, self.rider.give_keys(first, last)))

    def on_estate(self, src: int, m: Estate) -> None:
        if (src, m.number) in self.taken:
            return
        self.taken = [*self.taken[max(0, len(self.taken) - REMEMBERED + 1) :], (src, m.number)]
        new = without([(m.first, m.last + 1)], self.titles)
        self.titles = union(self.titles, new)
        self.rider.take_keys(tuple([heirloom for heirloom in m.heirlooms if holds(new, heirloom[0])]))
        self.update_titles()

    def await_titles(self, missing: list[Span]) -> None:
        if not missing:
            self.cancel_timer(TITLE)
        elif not self.is_armed(TITLE):
            self.missing = missing
            self.set_timer(TITLE, self.wait)

    def title_due(self) -> None:
        """What has been missing for so long is nowhere."""
        lost = without(common(self.missing, self.owned()), self.titles)
        if lost:
            self.out.note("a title was made anew")
            self.titles = union(self.titles, lost)
        self.update_titles()

    # The state.

    def titles_key(self) -> Key:
        held = tuple([(src, msg.key()) for src, msg in self.held])
        return (tuple(self.titles), tuple(self.missing), held, self.given, tuple(self.taken))

    def load_titles(self, key: Key) -> None:
        titles, missing, held, self.given, taken = key
        self.titles = [(first, past) for first, past in titles]
        self.missing = [(first, past) for first, past in missing]
        self.taken = [(src, number) for src, number in taken]
        for src, fields in held:
            msg = decode(tuple(fields))
            assert isinstance(msg, Keyed)
            self.held.append((src, msg))
