"""Random walks of agreed rosters (recovery/views.py): first everything fails that can, then nothing does.

Throughout, versions are the same for all, nobody that is forgotten has a lease, every change is decided once and the
asker is told the outcome, voters are as they should be, and no change disturbs a census. After the faults have stopped,
if a majority of the voters is left, all living members must have leases at the last version, the dead must be
forgotten, changes must be decided, and a newcomer must be let in. A breach raises Violation.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from fairgate.core.ids import NIL
from fairgate.core.message import Key
from fairgate.core.setup import Setup
from fairgate.recovery.agreed import MOST_VOTERS, Name, Refused, Value
from fairgate.recovery.ballots import LEAD
from fairgate.recovery.views import Views
from fairgate.scenario.manual import Violation
from fairgate.walks.unreliable import Unreliable

LEASE = 1_000_000_000
DRIFT = 100_000
OPTIONS = {"lease": LEASE, "drift": DRIFT, "period": LEASE * 3 // 20, "patience": LEASE * 9 // 20}
GATE = "g"
FIVE = 1_000_000  # seeds from here on begin with five voters
TROUBLES = (
    *("pause", "cut", "heal") * 3,
    *("crash", "crash", "join", "join", "leave", "change", "change", "change", "sit", "rise", "copy", "copy"),
)


class Ledger:
    """A Book with tokens that changes add, and one gate.

    Its content: the tokens, the hosts of the gate, the excluded ones that may still be inside, and the gate's view.
    """

    def __init__(self, founders: tuple[int, ...]) -> None:
        self.founders = founders

    def first(self) -> Key:
        return ((), self.founders, (), 1)

    def changed(self, content: Key, change: Key, peer: int) -> Key:
        tokens, hosts, ghosts, view = content
        what, token = change
        if what == "note" and len(tokens) % 4 == 3 and token % 2:
            raise Refused(f"{token} is odd")
        if what == "sit" and peer not in hosts:
            hosts, view = (*hosts, peer), view + 1
        elif what == "rise" and peer in hosts:
            hosts, view = tuple([host for host in hosts if host != peer]), view + 1
        elif what != "note":
            raise Refused(f"{peer} cannot {what}")
        return ((*tokens, token), hosts, ghosts, view)

    def joined(self, content: Key, peer: int, about: Key) -> Key:
        if about == ("bad",):
            raise Refused("nobody wants it")
        tokens, hosts, ghosts, view = content
        return (tokens, (*hosts, peer), ghosts, view + 1) if about == ("sit",) else content

    def excluded(self, content: Key, peer: int) -> Key:
        tokens, hosts, ghosts, view = content
        if peer not in hosts:
            return content
        return (tokens, tuple([host for host in hosts if host != peer]), (*ghosts, peer), view + 1)

    def forgotten(self, content: Key, peer: int) -> Key:
        tokens, hosts, ghosts, view = content
        if peer not in ghosts:
            return content
        return (tokens, hosts, tuple([ghost for ghost in ghosts if ghost != peer]), view + 1)

    def left(self, content: Key, peer: int) -> Key:
        tokens, hosts, ghosts, view = content
        if peer not in hosts:
            return content
        return (tokens, tuple([host for host in hosts if host != peer]), ghosts, view + 1)

    def concerns(self, content: Key, peer: int, change: Key) -> tuple[str, ...]:
        _, hosts, ghosts, _ = content
        touches = change[0] != "note" if change else peer in (*hosts, *ghosts)
        return (GATE,) if touches else ()

    def leader_of(self, content: Key, gate: str) -> int:
        return content[1][0] if content[1] else NIL


class Listener:
    """The Above of one node in a walk."""

    def __init__(self, walk: RosterWalk, me: int) -> None:
        self.walk = walk
        self.me = me
        self.view = 0

    def adopted(self, at: int, value: Value) -> None:
        _, hosts, _, view = value[4]
        leads = bool(hosts) and hosts[0] == self.me
        if leads and view != self.view:
            self.walk.push(self.walk.rng.randint(0, LEASE // 4), self.me, "census", (view,))
            self.walk.censuses[self.me] = view
        self.view = view
        self.walk.views(self.me).busy((GATE,) if leads and self.walk.censuses.get(self.me) == view else ())

    def applied(self, number: int) -> None:
        self.walk.decided(self.me, number, True)

    def denied(self, number: int, why: str) -> None:
        if number:
            self.walk.decided(self.me, number, False)
        else:
            self.walk.seen["turned away"] += 1

    def turned_away(self) -> None:
        self.walk.seen["turned away"] += 1

    def excluded(self, why: str) -> None:
        self.walk.seen["excluded"] += 1


class History:
    """What was learned to be chosen, by anybody: one value per version."""

    def __init__(self, first: Value) -> None:
        self.values: dict[int, Value] = {1: first}
        self.ever: set[Name] = {member[:2] for member in first[2]}

    @property
    def last(self) -> Value:
        return self.values[max(self.values)]

    def forgotten(self) -> list[Name]:
        _, _, members, lingering, _ = self.last
        return sorted(self.ever.difference([member[:2] for member in members], lingering))

    def voters_known_to(self, living: list[Views]) -> tuple[int, ...]:
        """The voters on whom these nodes depend. They know only what one of them knows. The excluded may know more, but
        nobody believes them: if a sole voter dies before its successors have heard of it, there is no majority."""
        excluded = {name for value in self.values.values() for name in value[3]}
        at = max([node.at for node in living if (node.me, node.joined) not in excluded], default=0)
        return self.values.get(at, self.last)[1]

    def learned(self, at: int, value: Value) -> bool:
        """Returns whether it is news."""
        news = at not in self.values
        if self.values.setdefault(at, value) != value:
            raise Violation(f"agreement: version {at} is {self.values[at]} and {value}")
        self.ever.update([member[:2] for member in value[2]])
        return news


class RosterWalk(Unreliable):
    def __init__(self, seed: int, views: type[Views] = Views) -> None:
        super().__init__(seed, DRIFT)
        self.make_views = views
        self.seen: Counter[str] = Counter()
        self.trouble_rate = self.rng.choice((0.005, 0.02, 0.05))
        n = self.rng.randint(3, 6) if seed < FIVE else 6
        founders = tuple(range(n))
        voters = 5 if seed >= FIVE else self.rng.choice((1, 3, 3, 5 if n > 4 else 3))
        self.setup = Setup(founders, options={**OPTIONS, "voters": founders[:voters]})
        self.book = Ledger(founders[: self.rng.randint(0, n)])
        self.asked: dict[tuple[int, int], int] = {}  # node and number of a change -> its token
        self.outcomes: dict[tuple[int, int], bool] = {}
        self.censuses: dict[int, int] = {}  # node -> the view whose census it leads
        self.over: set[int] = {0}  # views whose census is over
        self.tokens = 0
        self.left: set[int] = set()  # nodes that have left and stopped
        for me in founders:
            self.new(me)
        self.history = History(self.views(0).value)
        self.known = dict.fromkeys(founders, 1)
        for me in founders:
            self.do(me, "on_start")
            self.listeners[me].adopted(1, self.history.last)
            self.collect(me)

    # Nodes.

    @property
    def listeners(self) -> dict[int, Any]:
        return {me: node.above for me, node in self.nodes.items()}  # type: ignore[attr-defined]

    def new(self, me: int) -> None:
        self.add(me, lambda out: self.make_views(me, self.setup, out, self.book, Listener(self, me)))

    def views(self, me: int) -> Views:
        return self.at(me)  # type: ignore[return-value]  # a mutant's class is another

    def copy(self, me: int) -> None:
        """Replace the node by a new one that has loaded its key: nobody must notice."""
        old = self.views(me)
        key = old.key()
        node = self.make_views(me, self.setup, self.outboxes[me], self.book, old.above)
        node.now = old.now
        node.load(key)
        if node.key() != key:
            raise Violation(f"law: node {me} has another key after loading its own")
        self.nodes[me] = node
        self.collect(me)

    # What is judged.

    def stepped(self, me: int) -> None:
        node = self.views(me)
        if node.at != self.known.get(me, 0):
            self.known[me] = node.at
            if self.history.learned(node.at, node.value):
                self.judge_version(node.at)
        for peer, joined in self.history.forgotten():
            other = self.views(peer)
            if other.joined == joined and other.has_lease():
                raise Violation(f"lease: node {peer} is forgotten, and has a lease")

    def judge_version(self, at: int) -> None:
        """Of a version that nobody has known so far."""
        self.seen["versions"] += 1
        gen, voters, members, _, content = self.history.values[at]
        standing = [member[0] for member in members if member[2]]
        if gen > 1 and (len(voters) % 2 == 0 or len(voters) > MOST_VOTERS or not set(voters) <= set(standing)):
            raise Violation(f"voters: {voters} of {members}")
        if len(set(content[0])) < len(content[0]):
            raise Violation(f"once: a change was made twice: {content[0]}")
        if at - 1 in self.history.values:
            self.judge_census(self.history.values[at - 1], self.history.values[at])

    def judge_census(self, before: Value, after: Value) -> None:
        """Only exclusions give a gate a new view before the census of its present view is over."""
        disturbed = after[4][3] != before[4][3] and before[4][1] and before[4][3] not in self.over
        if disturbed and not set(after[3]) - set(before[3]):
            raise Violation(f"census: view {before[4][3]} was replaced before its census was over: {before} {after}")

    def decided(self, me: int, number: int, applied: bool) -> None:
        token = self.asked[me, number]
        self.seen["applied" if applied else "denied"] += 1
        if (me, number) in self.outcomes:
            raise Violation(f"once: node {me} was told twice of change {number}")
        self.outcomes[me, number] = applied
        if (token in self.views(me).value[4][0]) != applied:
            raise Violation(f"outcome: change {number} of node {me} is applied: {applied}, but {self.views(me).value}")

    # Troubles.

    def happen(self, me: int, event: str, arguments: Any) -> None:
        if event == "census":
            if self.censuses.get(me) == arguments[0]:
                del self.censuses[me]
                self.over.add(arguments[0])
                self.do(me, "busy", ())
        else:
            super().happen(me, event, arguments)
        if self.trouble_rate and self.rng.random() < self.trouble_rate:
            self.trouble()

    def trouble(self) -> None:
        what = self.rng.choice(TROUBLES)
        me = self.rng.choice(self.alive())
        self.seen[what] += 1
        getattr(self, f"do_{what}")(me)
        for one in self.alive():
            if self.views(one).may_stop():
                self.seen["stopped"] += 1
                self.left.add(one)
                self.stop(one)

    def do_pause(self, me: int) -> None:
        self.paused[me] = self.now + self.rng.randint(0, 2 * LEASE)

    def do_cut(self, me: int) -> None:
        self.cut(self.random_cut())

    def do_heal(self, me: int) -> None:
        self.cut(set())

    def do_crash(self, me: int) -> None:
        left = [one for one in self.history.last[1] if one not in self.stopped and one != me]
        if self.now < 8 * LEASE and len(left) > len(self.history.last[1]) // 2:
            self.stop(me)

    def do_join(self, contact: int) -> None:
        if len(self.alive()) < 9:
            self.join(contact, self.rng.choice(((), ("sit",), ("sit",), ("bad",))), self.rng.random() < 0.8)

    def join(self, contact: int, about: Key, standing: bool) -> int:
        me = len(self.nodes)
        self.new(me)
        self.do(me, "on_start")
        self.views(me).about_me = about
        self.views(me).standing = standing
        self.do(me, "on_join", contact)
        return me

    def do_leave(self, me: int) -> None:
        node = self.views(me)
        if node.joined and not node.gone and self.history.last[1] != (me,):
            self.do(me, "on_leave")

    def do_change(self, me: int) -> None:
        self.ask(me, "note")

    def do_sit(self, me: int) -> None:
        self.ask(me, "sit")

    def do_rise(self, me: int) -> None:
        self.ask(me, "rise")

    def ask(self, me: int, what: str) -> None:
        if not self.views(me).gone:
            self.tokens += 1
            self.asked[me, self.views(me).last_change + 1] = self.tokens
            self.do(me, "change", (what, self.tokens))

    def do_copy(self, me: int) -> None:
        self.copy(me)

    # A whole walk.

    def whole(self) -> None:
        self.run(10 * LEASE)
        self.trouble_rate = 0.0
        self.calm_down()
        for _ in range(2):
            if not self.has_majority():
                self.seen["no majority"] += 1
                return
            self.run(self.now + 4 * LEASE)
        members = [member[0] for member in self.history.last[2] if member[0] not in self.stopped]
        contacts = [me for me in members if not self.views(me).gone]
        if not contacts:
            self.seen["all have left"] += 1
            return
        newcomer = self.join(contacts[0], ("sit",), True)
        self.run(self.now + 5 * LEASE)
        self.judge_end(newcomer)

    def has_majority(self) -> bool:
        """Can the living go on?"""
        voters = self.history.voters_known_to([self.views(me) for me in self.alive()])
        dead = self.stopped.intersection(voters)
        anyone = not self.stopped.issuperset([member[0] for member in self.history.last[2]])
        if anyone and len(dead) * 2 >= len(voters) > len(dead - self.left) * 2:
            raise Violation(f"leaving: {sorted(dead)} of the voters {voters} are needed, and {sorted(self.left)} left")
        return len(dead) * 2 < len(voters)

    def judge_end(self, newcomer: int) -> None:
        at = max(self.history.values)
        _, voters, members, lingering, _ = self.history.last
        for me, *_ in members:
            node = self.views(me)
            if me in self.stopped or node.at != at or not (node.has_lease() or node.gone):
                raise Violation(f"liveness: {me} is a member of version {at} and dead, behind or without a lease")
            if node.pending and not node.gone:
                raise Violation(f"liveness: changes {node.pending} of {me} are not decided")
        if lingering or newcomer not in [member[0] for member in members]:
            raise Violation(f"liveness: {lingering} linger forever, or {newcomer} could not join: {self.history.last}")
        standing = [member for member in members if member[2]]
        if len(voters) < min(MOST_VOTERS, len(standing) - 1 + len(standing) % 2):
            raise Violation(f"voters: only {voters} of {members}")
        self.seen["leaders"] += len([me for me in voters if self.views(me).phase == LEAD])


def roster_walks(seeds: range | list[int], views: type[Views] = Views) -> Counter[str]:
    """Run one walk per seed; returns how often what happened. A Violation names the seed."""
    seen: Counter[str] = Counter()
    for seed in seeds:
        walk = RosterWalk(seed, views)
        try:
            walk.whole()
        except Violation as broken:
            raise Violation(f"{broken} [seed {seed}]") from broken
        seen.update(walk.seen)
    return seen
