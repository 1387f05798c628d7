"""Leases: who may act as a member, without comparing clocks; and who cannot be reached any more.

Theory of operation. A member sends beats to the voters. It has a lease while a majority of the voters has acknowledged
beats that were *sent* less than `lease` ago on its own clock. A voter acknowledges by the last roster that it has
*accepted*: the sender is in it, the voter is a voter in it, and the beat names the gen of that roster. So once a
majority has accepted a roster without p, p gets no lease any more; and once a majority has accepted other voters, the
old ones can give none.

An excluded member lingers in the roster. A peer that learns of the exclusion waits for `wait`, which is a lease on the
slowest clock measured by the fastest; the leader, for what its voters say is left of that. Then another version forgets
the member, and only then may others have what it held. So a wait survives a change of the leader.

To let a newcomer in gives it a lease, too: from when it first asked, which is before any voter heard of it.

A beat also says which peers its sender cannot reach. The leader judges that anew every time (`unreachable`).
"""

from fairgate.core.declare import node, record
from fairgate.core.ids import NIL
from fairgate.core.message import Key, as_tuples
from fairgate.core.setup import Setup
from fairgate.recovery.agreed import Ack, Beat, Name, Value, ids, majority, names
from fairgate.recovery.ballots import Ballots


@record
class Heard:
    """What a voter knows of a member by its beats, or by having let it in."""

    when: int  # last heard
    at: int = 0  # the version that the member knew
    busy: tuple[str, ...] = ()
    suspects: dict[int, int] = {}  # peer -> since when


def by_name(item: tuple[Name, Heard]) -> Name:
    return item[0]


@node
class Leases(Ballots):
    # The voter's part.
    heard: dict[Name, Heard] = {}
    since: int = 0  # when this gen was learned
    waits: dict[Name, int] = {}  # who lingers -> until when
    # The member's.
    joined: int = 0
    gone: bool = False
    asked: int = 0  # when it first asked to join
    number: int = 0  # of the last beat
    told: int = 0  # the version that the last beat named
    sent: dict[int, int] = {}  # beat of this gen -> when
    acked: dict[int, int] = {}  # voter of this gen -> when the last beat that it acknowledged was sent
    answered: int = 0  # when the last beat was sent that a majority has acknowledged
    until: int = 0
    leader_seen: int = NIL  # who leads, by the last Ack
    # Of a member that leaves.
    witnesses: dict[int, int] = {}  # who has told it of a version -> the latest such version
    is_succeeded: bool = False  # a version was chosen that follows one in which it has no vote
    last_voters: tuple[int, ...] = ()  # of the last roster that lists it
    # What the driver says.
    suspected: set[int] = set()  # peers that the driver cannot reach
    censuses: tuple[str, ...] = ()  # gates whose census this peer leads

    def initialize(self, setup: Setup) -> None:
        Ballots.initialize(self, setup)
        self.joined = self.at

    @property
    def leader(self) -> int:
        """The peer that leads, as far as this one knows; NIL if it does not."""
        return self.promised[1] if self.is_voter else self.leader_seen

    def has_lease(self) -> bool:
        return not self.gone and self.joined > 0 and self.now < self.until

    def may_stop(self) -> bool:
        """It has left, and its vote is not needed any more: the voters of a roster without it can go on by themselves.

        A majority of them knows that roster, or has done so: whoever votes on the next one knows this one."""
        if not self.gone or self.is_listed():
            return self.gone and len(self.value[2]) == 1
        know = [voter for voter in self.value[1] if self.witnesses.get(voter, 0) >= self.at]
        return self.is_succeeded or len(know) >= majority(self.value[1])

    def is_listed(self) -> bool:
        return (self.me, self.joined) in names(self.value)

    def is_told_by(self, src: int, at: int) -> None:
        if self.gone:
            self.witnesses[src] = max(self.witnesses.get(src, 0), at)

    # The member's part.

    def beat(self) -> None:
        self.number += 1
        self.told = self.at
        while self.sent and self.now - next(iter(self.sent.values())) >= self.lease:  # there may be a beat per version
            del self.sent[next(iter(self.sent))]
        self.sent[self.number] = self.now
        suspects = tuple(sorted(self.suspected.intersection(ids(self.value))))
        self.tell_voters(Beat(self.at, self.number, self.value[0], self.joined, self.censuses, suspects))

    def on_ack(self, src: int, m: Ack) -> None:
        self.is_told_by(src, m.at)
        if src not in self.value[1]:
            return
        self.leader_seen = m.leader
        if m.ok and m.number in self.sent:
            self.acked[src] = max(self.acked.get(src, self.sent[m.number]), self.sent[m.number])
            times = sorted(self.acked.values(), reverse=True)
            if len(times) >= majority(self.value[1]):
                sent = times[majority(self.value[1]) - 1]
                self.answered = max(self.answered, sent)
                self.until = max(self.until, sent + self.lease)

    # The voter's part.

    def latest(self) -> Value:
        return self.accepted_value if self.accepted_value[0] else self.value

    def on_beat(self, src: int, m: Beat) -> None:
        latest = self.latest()
        voters = latest[1]
        ok = self.me in voters and m.gen == latest[0] and (src, m.joined) in names(latest)
        news = ok and self.hear((src, m.joined), m)
        if src == self.promised[1] != self.me and src in voters:
            self.watch()
        self.tell(src, Ack(self.at, m.number, ok, self.promised[1]))
        if news:
            self.heard_news()

    def heard_news(self) -> None:
        """A beat differs from the one before in more than its number."""
        raise NotImplementedError

    def hear(self, name: Name, m: Beat) -> bool:
        """Returns whether the beat says something new."""
        before = self.heard.get(name)
        heard = self.heard[name] = Heard(self.now)
        heard.at = m.at
        heard.busy = m.busy
        known = before.suspects if before is not None else {}
        heard.suspects = {peer: known.get(peer, self.now) for peer in m.suspects}
        return before is None or (before.at, before.busy) != (m.at, m.busy) or set(known) != set(heard.suspects)

    def let_in(self, value: Value) -> None:
        for name in names(value):
            if name not in names(self.value):
                self.heard[name] = Heard(self.now)

    def left_of_leases(self, value: Value) -> int:
        """What the voters before this gen gave is not known here. They gave it before this gen was chosen."""
        lost = [name for name in value[3] if name not in self.value[3]]
        given = [max(self.heard[name].when, self.since) if name in self.heard else self.since for name in lost]
        return max([self.wait - (self.now - when) for when in given if self.now - when < self.wait], default=0)

    def lately(self, name: Name) -> bool:
        """Was the member heard within the patience? A leader has patience anew when it begins to lead."""
        heard = max(self.heard[name].when, self.led) if name in self.heard else self.led
        return name[0] == self.me or not self.patience or self.now - heard <= self.patience

    def unreachable(self) -> list[Name]:
        """The members to exclude: the silent, those that a majority of the voters suspects, and one of any two that
        disagree about each other for longer than the patience."""
        found = [name for name in names(self.value) if not self.lately(name) or self.is_suspected(name[0])]
        for accuser, accused in self.complaints():
            if not any(name in found for name in (accuser, accused)):
                found.append(max(accuser, accused, key=self.worth_excluding))
        return found

    def is_suspected(self, peer: int) -> bool:
        """Does a majority of the voters suspect this peer? Silent voters do not count."""
        voters = [name for name in names(self.value) if name[0] in self.value[1] and self.lately(name)]
        accusers = [name for name in voters if peer in self.suspects_of(name)]
        return peer != self.me and len(accusers) >= majority(self.value[1])

    def complaints(self) -> list[tuple[Name, Name]]:
        """Who has suspected whom for longer than the patience."""
        accused = {name[0]: name for name in names(self.value)}
        return [
            (name, accused[peer])
            for name in names(self.value)
            for peer, since in sorted(self.suspects_of(name).items())
            if peer in accused and peer != name[0] and self.patience and self.now - since > self.patience
        ]

    def suspects_of(self, name: Name) -> dict[int, int]:
        """By a beat within the patience. What an older one says may be over: a voter that acknowledged no beats for a
        while may lead next."""
        heard = self.heard.get(name)
        if heard is None or (self.patience and self.now - heard.when > self.patience):
            return {}
        return heard.suspects

    def worth_excluding(self, name: Name) -> tuple[bool, int, bool, int]:
        """Orders members: this peer stays, then those with fewest complaints by or about them, then the voters."""
        concerned = [pair for pair in self.complaints() if name in pair]
        return (name[0] != self.me, len(concerned), name[0] not in self.value[1], name[0])

    # The state.

    def heard_key(self) -> Key:
        return tuple(
            [
                (name, self.age(one.when), one.at, one.busy, self.ages(one.suspects))
                for name, one in sorted(self.heard.items(), key=by_name)
            ]
        )

    def load_heard(self, key: Key) -> None:
        self.heard = {}
        for name, age, at, busy, suspects in key:
            heard = self.heard[name] = Heard(self.now - age)
            heard.at = at
            heard.busy = busy
            heard.suspects = self.whens(suspects)

    def ages(self, times: dict[int, int]) -> Key:
        return tuple([(one, self.age(when)) for one, when in sorted(times.items())])

    def whens(self, ages: Key) -> dict[int, int]:
        return {one: self.now - age for one, age in ages}

    def since_key(self) -> int:
        return self.age(self.since)

    def load_since(self, age: int) -> None:
        self.since = self.now - age

    def waits_key(self) -> Key:
        return tuple([(name, max(due - self.now, 0)) for name, due in sorted(self.waits.items())])

    def load_waits(self, key: Key) -> None:
        self.waits = {as_tuples(name): self.now + left for name, left in key}

    def asked_key(self) -> int:
        return self.age(self.asked) if not self.joined else 0

    def load_asked(self, age: int) -> None:
        self.asked = self.now - age

    def sent_key(self) -> Key:
        return self.ages(self.sent)

    def load_sent(self, key: Key) -> None:
        self.sent = self.whens(key)

    def acked_key(self) -> Key:
        return self.ages(self.acked)

    def load_acked(self, key: Key) -> None:
        self.acked = self.whens(key)

    def answered_key(self) -> int:
        return self.age(self.answered) if self.patience else 0

    def load_answered(self, age: int) -> None:
        self.answered = self.now - age

    def until_key(self) -> int:
        return max(self.until - self.now, 0)

    def load_until(self, left: int) -> None:
        self.until = self.now + left
