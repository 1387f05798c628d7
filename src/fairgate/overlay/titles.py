"""Titles: which node serves a key while the nodes of a dynamic ring disagree about its owner.

While a ring changes, two nodes may both believe that they own a key, or none may. So a key has a *title*, which is at
one node or in flight. A node that owns a key by its tables but lacks its title holds back messages for it (`held`). A
node that has a title but no longer owns the key gives the title to the owner, together with the rider's state for the
key (`Estate`). If that was the wrong node, it passes the title on: titles follow the owners. So no key is served twice,
and its state moves with it.

A title is lost with the node that has it, or with the message that carries it. A node that has owned a key for
`overlay_wait` without getting its title makes a new one, with empty state. That wait must be longer than a message and
a repair of the ring take. With riders that lend votes for a limited time, it must be at least that long, so that
everything the lost node lent has expired. A node that was taken for dead but lives may go on serving for as long as it
believes that it owns the key; there are then two titles.
"""

from fairgate.core.ids import NIL
from fairgate.core.keyed import Keyed
from fairgate.core.keyspace import place_of
from fairgate.core.layers import MakeNode
from fairgate.core.message import Key, decode
from fairgate.core.outbox import Outbox
from fairgate.core.setup import Setup
from fairgate.overlay.messages import Estate
from fairgate.overlay.overlay import Overlay
from fairgate.overlay.spans import Span, around, common, holds, spans_between, union, without

UPKEEP = 5_000_000_000  # ns: the option `overlay_upkeep`
PERIODS = 4  # of upkeep: how long to wait for a title by default (option `overlay_wait`)
REMEMBERED = 32  # how many of the latest estates are remembered, to ignore duplicates
TITLE = "title"


class Titled(Overlay):
    def __init__(self, me: int, setup: Setup, out: Outbox, upper: MakeNode) -> None:
        self.period: int = setup.options.get("overlay_upkeep", UPKEEP)
        self.wait: int = setup.options.get("overlay_wait", PERIODS * self.period)
        self.titles: list[Span] = []
        self.missing: list[Span] = []  # owned without a title when the timer was set
        self.held: list[tuple[int, Keyed]] = []  # (last hop, message)
        self.given = 0  # estates given away
        self.taken: list[tuple[int, int]] = []  # the latest estates received: (sender, number)
        Overlay.__init__(self, me, setup, out, upper)

    def is_there(self) -> bool:
        """Is this node on the ring?"""
        raise NotImplementedError

    def serves(self, key: int) -> bool:
        return self.next_hop(key) == NIL and holds(self.titles, key)

    def zone(self) -> tuple[int, ...]:
        return around(common(self.owned(), self.titles), place_of(self.me))

    def heir(self, key: int) -> int:
        """The node to give the title of this key to: its owner, or a node nearer to the owner; NIL if there is none."""
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
        """Give away and wait for titles, and retry held messages. Call it when the range or the titles change."""
        self.rider.now = self.now
        owned = self.owned()
        for span in without(self.titles, owned):
            self.give(span)
        self.await_titles(without(owned, self.titles))
        self.rider.on_tables()
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
        """Make new titles for keys whose title has been missing for `wait`: it must be lost."""
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
