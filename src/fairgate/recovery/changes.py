"""What the next roster is: exclusions, departures, newcomers, changes and voters, all that is wanted by then in one.

Theory of operation. The leader keeps what it was asked for in memory only. The askers repeat their requests until
they see the outcome in a roster. Changes are numbered by their askers. The roster has the number of each member's last
change that was decided, and which of the latest were refused. So every change is made or refused once, whoever leads,
and a late copy of a request does nothing. A refused change refuses itself alone.

A gate whose census is not over is *busy*. Changes and departures that would give it a new view wait, because otherwise
many of them could keep the gate from ever letting anybody in. Exclusions do not wait.

The voters are standing members that were heard lately, an odd number of them and at most seven. A fourth voter would
not allow one more failure than three, and of two voters neither may fail.

A node takes rosters from voters of the last one it knows. While it joins, it takes them from the peer that it asked for
admission. If no majority of the voters has answered for longer than the patience, it takes them from any member. A
voter also takes the roster for which it has voted from the members of that roster.
"""

from typing import Any

from fairgate.core.declare import Fixed, Id, node
from fairgate.core.ids import NIL
from fairgate.core.message import Key
from fairgate.core.setup import Setup
from fairgate.recovery.agreed import (
    LONGEST_REASON,
    MOST_CHANGES,
    MOST_VOTERS,
    Ask,
    Behind,
    Change,
    Chosen,
    Introduce,
    Join,
    Leave,
    Member,
    Name,
    NoMember,
    TurnedAway,
    Value,
    ids,
    majority,
    names,
)
from fairgate.recovery.ballots import IDLE, LEAD
from fairgate.recovery.leases import Leases

MOST_NEWCOMERS = 1_000  # that wait at one peer
Newcomer = tuple[int, Key, bool]  # who introduced it, what it says about itself, whether it will be a standing member


@node
class Changes(Leases):
    """What the next version is."""

    book: Fixed[Any]  # a Book
    above: Fixed[Any]  # an Above
    news: Fixed[list[Any]] = []  # calls to `above`, made when the step is complete

    about_me: Key = ()  # what this node says about itself when it joins; set by the driver
    standing: bool = True  # likewise: may it vote?
    contact: Id = NIL  # the peer that was asked for admission
    last_change: int = 0  # number of the last change that was asked for here
    pending: dict[int, Key] = {}  # changes that were asked for here, and are not decided
    introduced: dict[int, tuple[Key, bool]] = {}  # strangers that asked this node for admission
    # Whoever leads.
    asks: dict[Name, tuple[Change, ...]] = {}
    leaving: set[Name] = set()
    newcomers: dict[int, Newcomer] = {}
    touched: set[str] = set()  # gates that get a view by the proposal
    viewed: dict[str, int] = {}  # gate -> the last version that gave it a view, by this leader
    leads_from: int = 0  # the version at which this leader began

    def initialize(self, setup: Setup) -> None:
        if self.me in setup.members:
            founders = tuple([(member, 1, True, 0, ()) for member in setup.members])
            self.at = 1
            self.value = (1, tuple(setup.options.get("voters", setup.members[:1])), founders, (), self.book.first())
        Leases.initialize(self, setup)

    # What is asked for.

    def serve(self) -> None:
        if self.phase != LEAD:
            self.ask()
        elif not self.proposal[0]:
            value = self.next_value()
            if value != self.value:
                self.propose(value)

    def ask(self) -> None:
        """Ask whoever leads. This is repeated with every beat."""
        for voter in self.value[1]:
            if voter == self.me or not self.is_listed():
                continue
            if self.gone:
                self.tell(voter, Leave(self.at, self.joined))
                continue
            if self.pending:
                self.tell(voter, Ask(self.at, self.joined, self.asked_for()))
            for newcomer, (about, standing) in sorted(self.introduced.items()):
                self.tell(voter, Introduce(self.at, newcomer, about, standing))
        if not self.joined and self.contact != NIL:
            self.tell(self.contact, Join(self.about_me, self.standing))

    def asked_for(self) -> tuple[Change, ...]:
        return tuple(sorted(self.pending.items())[:MOST_CHANGES])

    def on_ask(self, src: int, m: Ask) -> None:
        if self.phase != IDLE:
            self.asks[src, m.joined] = m.changes
            self.lead_on()

    def on_leave_message(self, src: int, m: Leave) -> None:
        if self.phase != IDLE:
            self.leaving.add((src, m.joined))
            self.lead_on()

    def on_join_message(self, src: int, m: Join) -> None:
        if src in ids(self.value):
            self.tell(src, Chosen(self.at, self.value))
        elif not self.joined or self.gone:
            self.tell(src, NoMember())
        elif src in self.introduced or len(self.introduced) < MOST_NEWCOMERS:
            self.introduced[src] = (m.said, m.standing)
            self.serve()

    def on_introduce(self, src: int, m: Introduce) -> None:
        if m.newcomer in ids(self.value):
            return  # a late copy, which must not let it in again when it leaves
        if self.phase != IDLE and (m.newcomer in self.newcomers or len(self.newcomers) < MOST_NEWCOMERS):
            self.newcomers[m.newcomer] = (src, m.said, m.standing)
            self.lead_on()

    def lead_on(self) -> None:
        """If this node leads, do what is wanted by now."""
        if self.phase == LEAD:
            self.serve()

    def take_over(self) -> None:
        """Requests are repeated to whoever leads, so those of an earlier time are not needed."""
        if self.phase == IDLE:
            self.asks = {}
            self.leaving = set()
            self.newcomers = {}
            self.viewed = {}
            self.leads_from = self.at
        Leases.take_over(self)

    def on_turned_away(self, src: int, m: TurnedAway) -> None:
        if m.newcomer == self.me and not self.joined and src == self.contact:
            self.news.append((self.above.denied, 0, m.why))
        elif src in self.value[1] and self.introduced.pop(m.newcomer, None) is not None:
            self.tell(m.newcomer, m)

    def on_no_member(self, src: int, m: NoMember) -> None:
        if src == self.contact and not self.joined:
            self.news.append((self.above.turned_away,))

    def heard_news(self) -> None:
        """A member's beat says something new about censuses or about peers that it cannot reach."""
        self.lead_on()
        if self.phase == IDLE and self.is_voter and self.patience and self.is_suspected(self.promised[1]):
            self.set_timer("watch", self.out.choose(8) * self.period // 8)

    # What was chosen.

    def on_behind(self, src: int, m: Behind) -> None:
        """`compare` has answered."""

    def on_chosen(self, src: int, m: Chosen) -> None:
        self.is_told_by(src, m.at)
        if m.at <= self.at:
            self.told_late(src, m)
        elif self.believes(src) or self.has_voted_for(src, m):
            self.learned(m.at, m.value)
        else:
            self.tell_voters(Behind(self.at))

    def told_late(self, src: int, m: Chosen) -> None:
        if m.at < self.at and self.gone and src in self.last_voters and (self.me, self.joined) not in names(m.value):
            self.is_succeeded = True

    def believes(self, src: int) -> bool:
        if not self.joined:
            return src == self.contact
        silent = self.now - self.answered > self.patience
        return src in self.value[1] or (silent and src in ids(self.value))

    def has_voted_for(self, src: int, m: Chosen) -> bool:
        """The next roster, for which this voter has voted. If all voters that knew it to be chosen are dead, only the
        members that it lets in can tell."""
        return m.at == self.at + 1 and m.value == self.accepted_value and src in ids(m.value)

    # The next version.

    def next_value(self) -> Value:
        """All that is wanted by now, as one version."""
        value = self.value
        self.touched = set()
        for name in self.unreachable():
            value = self.excluding(value, name)
        for name in sorted(self.leaving | self.own_departure()):
            value = self.parting(value, name)
        own_newcomers = {newcomer: (self.me, *said) for newcomer, said in self.introduced.items()}
        for newcomer, said in sorted({**self.newcomers, **own_newcomers}.items()):
            value = self.with_newcomer(value, newcomer, said)
        own = {(self.me, self.joined): self.asked_for()} if self.pending and not self.gone else {}
        for name, changes in sorted({**self.asks, **own}.items()):
            value = self.with_changes(value, name, changes)
        for name, due in sorted(self.waits.items()):
            if due <= self.now:
                value = self.forgetting(value, name)
        return self.with_voters(value)

    def own_departure(self) -> set[Name]:
        return {(self.me, self.joined)} if self.gone else set()

    def excluding(self, value: Value, name: Name) -> Value:
        gen, voters, members, lingering, content = value
        rest = tuple([member for member in members if member[:2] != name])
        if not self.next_voters(rest):
            return value
        self.touch(content, name[0], ())
        return (gen, voters, rest, (*lingering, name), self.book.excluded(content, name[0]))

    def parting(self, value: Value, name: Name) -> Value:
        gen, voters, members, lingering, content = value
        rest = tuple([member for member in members if member[:2] != name])
        if name not in names(value) or not self.next_voters(rest) or self.must_wait(content, name[0], ()):
            return value
        self.touch(content, name[0], ())
        return (gen, voters, rest, lingering, self.book.left(content, name[0]))

    def with_newcomer(self, value: Value, newcomer: int, said: Newcomer) -> Value:
        gen, voters, members, lingering, content = value
        contact, about, standing = said
        if newcomer in ids(value) or newcomer in [peer for peer, _ in lingering]:
            return value
        try:
            content = self.book.joined(content, newcomer, about)
        except ValueError as refused:
            self.turn_away(contact, newcomer, str(refused)[:LONGEST_REASON])
            return value
        if self.must_wait(content, newcomer, ()):
            return value
        self.touch(content, newcomer, ())
        return (gen, voters, (*members, (newcomer, self.at + 1, standing, 0, ())), lingering, content)

    def turn_away(self, contact: int, newcomer: int, why: str) -> None:
        self.newcomers.pop(newcomer, None)
        if contact == self.me:
            self.introduced.pop(newcomer, None)
        self.tell(newcomer if contact == self.me else contact, TurnedAway(newcomer, why))

    def with_changes(self, value: Value, name: Name, changes: tuple[Change, ...]) -> Value:
        """The changes of one member, in order, up to one that has to wait for a census."""
        gen, voters, members, lingering, content = value
        if name not in names(value) or not changes:
            return value
        peer, joined, standing, last, refused = members[names(value).index(name)]
        refused = tuple([refusal for refusal in refused if refusal[0] >= changes[0][0]])
        for number, change in changes:
            if number <= last:
                continue
            if number != last + 1 or self.must_wait(content, peer, change):
                break
            last = number
            try:
                after = self.book.changed(content, change, peer)
                self.touch(content, peer, change)
                content = after
            except ValueError as why:
                refused = (*refused, (number, str(why)[:LONGEST_REASON]))
        if last == members[names(value).index(name)][3]:
            return value
        mine: Member = (peer, joined, standing, last, refused)
        return (gen, voters, tuple([mine if one[:2] == name else one for one in members]), lingering, content)

    def forgetting(self, value: Value, name: Name) -> Value:
        gen, voters, members, lingering, content = value
        if self.must_wait(content, name[0], ()):
            return value
        self.touch(content, name[0], ())
        rest = tuple([other for other in lingering if other != name])
        return (gen, voters, members, rest, self.book.forgotten(content, name[0]))

    # Censuses.

    def must_wait(self, content: Key, peer: int, change: Key) -> bool:
        return any(self.is_busy(gate) for gate in self.book.concerns(content, peer, change))

    def touch(self, content: Key, peer: int, change: Key) -> None:
        self.touched.update(self.book.concerns(content, peer, change))

    def is_busy(self, gate: str) -> bool:
        """Until the gate's leader says, knowing the version that gave it its view, that the census is over."""
        leader = self.book.leader_of(self.value[4], gate)
        name = next((name for name in names(self.value) if name[0] == leader), None)
        if name is None or name not in self.heard:
            return name is not None
        return gate in self.heard[name].busy or self.heard[name].at < self.viewed.get(gate, self.leads_from)

    def inherit(self, value: Value) -> None:
        """Which gates get a view by the proposal of somebody else is not known, so all of them may."""
        self.viewed = {}
        self.leads_from = self.at + 1
        self.propose(value)

    # Voters.

    def with_voters(self, value: Value) -> Value:
        _, voters, members, lingering, content = value
        wanted = self.next_voters(members)
        if not wanted or set(wanted) == set(voters):
            return value
        return (self.at + 1, wanted, members, lingering, content)

    def next_voters(self, members: tuple[Member, ...]) -> tuple[int, ...]:
        """An odd number of standing members, most of which were heard lately.

        Empty if there are none such: without them nothing might be chosen any more."""
        standing = {member[0]: member[:2] for member in members if member[2]}
        before = [voter for voter in self.value[1] if voter in standing]
        if not self.patience:
            return tuple(before)
        more = [peer for peer, name in standing.items() if peer not in before and self.has_beaten(name)]
        there = {peer for peer in (*before, *more) if self.lately(standing[peer])}
        best = sorted([*before, *more], key=lambda peer: (peer != self.me, peer not in there, peer in more))
        wanted = best[: min(MOST_VOTERS, len(best) - 1 + len(best) % 2)]
        return tuple(wanted) if len(there.intersection(wanted)) >= majority(tuple(wanted)) else ()

    def has_beaten(self, name: Name) -> bool:
        """Has it sent a beat since it was let in?"""
        return name in self.heard and self.heard[name].at >= name[1] and self.lately(name)

    # A version is known.

    def entered(self, before: Value, wait: int) -> None:
        if self.value[0] != before[0]:
            self.sent = {}
            self.acked = {}
            self.since = self.now
            self.hand_over()
        known = names(self.value)
        self.last_voters = before[1] if (self.me, self.joined) in names(before) else self.last_voters
        self.is_succeeded = self.gone and not self.is_listed() and self.me not in before[1]
        self.waits = {name: self.waits.get(name, self.now + wait) for name in self.value[3]}
        self.heard = {name: heard for name, heard in self.heard.items() if name in known}
        viewed = self.viewed | dict.fromkeys(self.touched, self.at)
        self.viewed = {gate: at for gate, at in viewed.items() if self.book.leader_of(self.value[4], gate) != NIL}
        self.touched = set()
        self.asks = {name: asked for name, asked in self.asks.items() if name in known}
        self.leaving.intersection_update(known)
        self.newcomers = {peer: said for peer, said in self.newcomers.items() if peer not in ids(self.value)}
        self.welcome()
        self.news.append((self.above.adopted, self.at, self.value))
        self.settle_own()

    def hand_over(self) -> None:
        """If whoever led is no voter any more, the first of the new voters takes over at once."""
        if self.patience and self.is_voter and self.promised[1] not in self.value[1]:
            self.set_timer("watch", self.value[1].index(self.me) * self.patience)

    def tell_those_that_left(self, before: Value) -> None:
        """They may stop when a majority of the voters knows. If they had to ask, voters that leave as well could have
        stopped by then."""
        for peer, joined in names(before):
            if self.is_voter and (peer, joined) not in (*names(self.value), *self.value[3], (self.me, self.joined)):
                self.tell(peer, Chosen(self.at, self.value))

    def welcome(self) -> None:
        """Tell strangers that asked here that they were let in: they believe nobody else yet."""
        for peer in sorted(self.introduced):
            if peer in ids(self.value):
                del self.introduced[peer]
                self.tell(peer, Chosen(self.at, self.value))

    def settle_own(self) -> None:
        """What the new version means for this node itself."""
        mine = next((member for member in self.value[2] if member[0] == self.me), None)
        if not self.joined and mine is not None and not self.gone:
            self.joined = mine[1]
            self.until = self.asked + self.lease
        if self.joined and (mine is None or mine[1] != self.joined):
            if not self.gone:
                self.news.append((self.above.excluded, "the cluster has excluded this peer: it could not be reached"))
            self.gone = True
        elif mine is not None:
            refused = dict(mine[4])
            for number in sorted([number for number in self.pending if number <= mine[3]]):
                del self.pending[number]
                if number in refused:
                    self.news.append((self.above.denied, number, refused[number]))
                else:
                    self.news.append((self.above.applied, number))
