"""The model of agreed rosters (recovery/views.py): every order of votes, beats, changes and ticks of a few peers.

Messages arrive in any order, and may never be taken in a run, so that loss and crashes need no steps of their own. Two
properties are checked in every state. *Agreement*: a version is the same roster, whoever has learned of it. *Lease*: a
member that a chosen roster has forgotten has no lease.

Whoever learns first that a version was chosen tells all, and it is the same version from whomever it comes. So each
node is told of each version by one message, from a peer that it believes, and messages that could only lead to such a
message, or come too late to matter, are left out.
"""

from dataclasses import asdict, dataclass
from typing import Any, cast

from fairgate.check.explore import CheckReport, Explorer
from fairgate.check.interning import Interned
from fairgate.check.model import Model, State, Successor
from fairgate.check.steps import StepOutcome, Steps
from fairgate.core.declare import merged_fields
from fairgate.core.message import Key
from fairgate.core.node import Node
from fairgate.core.outbox import Outbox
from fairgate.core.setup import Setup
from fairgate.recovery.agreed import Name, Value
from fairgate.recovery.ballots import MILLION
from fairgate.recovery.views import Views

Input = tuple[int, str]  # a node, and what it is told (`steered`)

VOTES = ("vw.prepare", "vw.promise", "vw.accept", "vw.accepted")
STATE = [field.name for field in merged_fields(Views) if field.is_state]
AT, VALUE, JOINED, GONE, UNTIL = [1 + STATE.index(name) for name in ("at", "value", "joined", "gone", "until")]


@dataclass(frozen=True)
class RosterCase:
    """Peers that agree on rosters, with bounds on everything that may happen to them. Times are in ticks."""

    inputs: tuple[Input, ...]  # each happens at most once, at any moment
    nodes: int = 4
    founders: int = 0  # the first so many; 0: all
    voters: tuple[int, ...] = (0, 1, 2)
    leader: int = 0  # at first
    before: tuple[tuple[int, str, tuple[int, ...]], ...] = ((3, "beat", ()),)  # and who has not heard of that yet
    ticks: int = 0
    slow: int = 0  # how often a clock misses a tick
    dups: int = 0  # messages that arrive twice
    lease: int = 1
    wait: int = 1  # a lease on the slowest clock, by the fastest
    last: int = 9  # votes about the successors of later versions are not delivered

    def describe(self) -> dict[str, Any]:
        return asdict(self)


class Mute:
    """An Above to which nothing matters."""

    def adopted(self, at: int, value: Value) -> None:
        pass

    def applied(self, number: int) -> None:
        pass

    def denied(self, number: int, why: str) -> None:
        pass

    def excluded(self, why: str) -> None:
        pass


class Blank:
    """A Book whose content is the changes that were made. It has no gates."""

    def first(self) -> Key:
        return ()

    def changed(self, content: Key, change: Key, peer: int) -> Key:
        return (*content, (peer, change))

    def joined(self, content: Key, peer: int, about: Key) -> Key:
        return content

    def excluded(self, content: Key, peer: int) -> Key:
        return content

    def forgotten(self, content: Key, peer: int) -> Key:
        return content

    def left(self, content: Key, peer: int) -> Key:
        return content

    def concerns(self, content: Key, peer: int, change: Key) -> tuple[str, ...]:
        return ()

    def leader_of(self, content: Key, gate: str) -> int:
        return -1


def steered(views: type[Views]) -> type[Views]:
    """The class, with timers that make its nodes do what usually depends on many beats."""

    class Steered(views):  # type: ignore[valid-type, misc]
        def __init__(self, *arguments: Any) -> None:
            self.outcasts: tuple[Name, ...] = ()
            self.wished: tuple[int, ...] = ()
            super().__init__(*arguments)

        def on_timer(self, name: str) -> None:
            what, *numbers = name.split()
            if what == "exclude":
                self.outcasts = (*self.outcasts, (int(numbers[0]), 1))
            elif what == "voters":
                self.wished = tuple([int(number) for number in numbers])
            elif what == "change":
                self.change((len(self.pending),))
            elif what == "join":
                self.on_join(int(numbers[0]))
            elif what == "leave":
                self.on_leave()
            elif what == "beat":
                self.beat()
            elif what == "take_over":
                self.take_over()
            if self.phase == "lead":
                self.serve()
            self.finish()

        def unreachable(self) -> list[Name]:
            members = [member[:2] for member in self.value[2]]
            return [name for name in self.outcasts if name in members]

        def next_voters(self, members: Any) -> tuple[int, ...]:
            known = [member[0] for member in members]
            wished = tuple([voter for voter in self.wished if voter in known])
            return wished or super().next_voters(members)

        def entered(self, before: Value, wait: int) -> None:
            self.wished = ()
            super().entered(before, wait)

        def key(self) -> Key:
            return (*super().key(), self.outcasts, self.wished)

        def load(self, key: Key) -> None:
            *own, self.outcasts, self.wished = key
            super().load(tuple(own))

    return Steered


class RosterModel(Model):
    """A state: the key of each node, the budgets, what was chosen, then the messages in flight."""

    def __init__(self, case: RosterCase, views: type[Views] = Views) -> None:
        self.bounds = case
        self.n = case.nodes
        self.fifo = False
        self.table = Interned()
        self.things = self.table.things
        self.at_budgets = self.n
        self.at_history = self.n + 1
        self.at_flight = self.n + 2
        self.over: dict[int, list[Name]] = {}  # history -> the members that are forgotten by then
        options = {
            "voters": case.voters,
            "lease": case.lease,
            "drift": (case.wait - case.lease) * MILLION // case.lease,
        }
        founders = Setup(tuple(range(case.founders or case.nodes)), options=options)
        cls = steered(views)

        def make(me: int, setup: Setup, out: Outbox) -> Node:
            return cls(me, founders, out, Blank(), Mute())

        self.steps = Steps(make, Setup(tuple(range(case.nodes))), self.table, conserving=False)
        self.begin = self.beginning()

    # The first state: somebody leads, all know it, and that was long ago.

    def first(self) -> State:
        return self.begin

    def beginning(self) -> State:
        case = self.bounds
        keys = [self.steps.first_key(me) for me in range(self.n)]
        late: list[int] = []
        for me in range(self.n):
            keys[me] = self.only(self.steps.call(keys[me], "start", ())).key
        for me, name, deaf in ((case.leader, "take_over", ()), *case.before):
            late += self.quietly(keys, (me, name), deaf)
        keys = [self.steps.later(key, 2 * case.wait + 2) for key in keys]
        known = {self.things[key][1][AT]: self.things[key][1][VALUE] for key in keys}
        budgets = (case.ticks, case.slow, case.dups, *[1 for _ in case.inputs])
        state = [
            *keys,
            self.table.number("budgets", budgets),
            self.table.number("history", tuple(sorted(known.items()))),
        ]
        for message in late:
            self.send(state, message)
        return tuple(state)

    def quietly(self, keys: list[int], input: Input, deaf: tuple[int, ...]) -> list[int]:
        """Let an input happen, and deliver what follows; returns the messages to the deaf."""
        me, name = input
        outcome = self.only(self.steps.call(keys[me], "timer", (name,)))
        keys[me] = outcome.key
        flight, late = list(outcome.sent), []
        while flight:
            message = flight.pop(0)
            dst = self.things[message][1]
            if dst in deaf:
                late.append(message)
                continue
            outcome = self.only(self.steps.deliver(keys[dst], message))
            keys[dst] = outcome.key
            flight += outcome.sent
        return late

    def only(self, outcomes: tuple[StepOutcome, ...]) -> StepOutcome:
        (outcome,) = outcomes
        if outcome.broken:
            raise AssertionError(outcome.broken)
        return outcome

    # Steps.

    def successors(self, state: State) -> list[Successor]:
        found: list[Successor] = []
        budgets = self.things[state[self.at_budgets]]
        self.deliveries(found, state)
        if budgets[2]:
            self.doubled(found, state, budgets)
        inputs = self.bounds.inputs
        for which, (me, name) in enumerate(inputs):
            # Of two inputs that are the same and stand together, the first happens first.
            waits = which > 0 and inputs[which] == inputs[which - 1] and budgets[2 + which]
            if budgets[3 + which] and not waits:
                outcomes = self.steps.call(state[me], "timer", (name,))
                self.after(found, self.spending(state, budgets, 3 + which), me, outcomes, ("input", me, name))
        if budgets[0]:
            self.tick(found, state)
        return found

    def doubled(self, found: list[Successor], state: State, budgets: tuple[int, ...]) -> None:
        """Messages that are delivered and stay in flight."""
        for message in sorted(set(state[self.at_flight :])):
            dst = self.things[message][1]
            outcomes = self.steps.deliver(state[dst], message)
            self.after(found, self.spending(state, budgets, 2), dst, outcomes, ("duplicate", dst, message))

    def spending(self, state: State, budgets: tuple[int, ...], which: int) -> list[int]:
        less = (*budgets[:which], budgets[which] - 1, *budgets[which + 1 :])
        poorer = list(state)
        poorer[self.at_budgets] = self.table.number("budgets", less)
        return poorer

    def tick(self, found: list[Successor], state: State) -> None:
        """All clocks advance, but for at most one."""
        budgets = self.things[state[self.at_budgets]]
        for slow in [-1, *range(self.n)] if budgets[1] else [-1]:
            later = list(state)
            for me in range(self.n):
                later[me] = state[me] if me == slow else self.steps.later(state[me], 1)
            less = (budgets[0] - 1, budgets[1] - (slow >= 0), *budgets[2:])
            later[self.at_budgets] = self.table.number("budgets", less)
            found.append((("tick", slow, None, ()), tuple(later), self.lease_broken(later)))

    def after(
        self,
        found: list[Successor],
        state: list[int],
        me: int,
        outcomes: tuple[StepOutcome, ...],
        what: tuple[str, int, Any],
    ) -> None:
        (outcome,) = outcomes
        before, now = self.things[state[me]][1], self.things[outcome.key][1]
        state[me] = outcome.key
        broken = outcome.broken
        if now[AT] != before[AT]:
            broken = broken or self.learn(state, now[AT], now[VALUE])
            flight = [one for one in state[self.at_flight :] if self.things[one][1] != me or self.matters(one, now[AT])]
            state[self.at_flight :] = flight
        for message in outcome.sent:
            self.send(state, message)
        found.append(((what[0], what[1], what[2], ()), tuple(state), broken or self.lease_broken(state)))

    def learn(self, state: list[int], at: int, value: Value) -> str:
        known = dict(self.things[state[self.at_history]])
        if known.setdefault(at, value) != value:
            return f"agreement: version {at} is {known[at]} and {value}"
        state[self.at_history] = self.table.number("history", tuple(sorted(known.items())))
        return ""

    def send(self, state: list[int], message: int) -> None:
        _, dst, key = self.things[message]
        if not self.matters(message, self.things[state[dst]][1][AT]):
            return
        if key[0] == "vw.chosen":
            message = self.table.number("message", (self.bounds.leader, dst, key))
            if message in state[self.at_flight :]:
                return
        order = self.order(message)
        place = len(state)
        while place > self.at_flight and order < self.order(state[place - 1]):
            place -= 1
        state.insert(place, message)

    def matters(self, message: int, at: int) -> bool:
        """Does it matter to a node that knows version `at`?"""
        tag, about, *fields = self.things[message][2]
        if tag == "vw.chosen":
            return cast(bool, about > at)
        if tag in VOTES:
            return cast(bool, at <= about < self.bounds.last)
        return tag != "vw.behind" and (tag != "vw.ack" or bool(fields[1]))

    # Properties.

    def lease_broken(self, state: list[int]) -> str:
        history = state[self.at_history]
        over = self.over.get(history)
        if over is None:
            over = self.over[history] = forgotten(dict(self.things[history]))
        for me, joined in over:
            key = self.things[state[me]][1]
            if key[UNTIL] and not key[GONE] and key[JOINED] == joined:
                return f"lease: node {me} is forgotten, and has a lease"
        return ""

    def waiting(self, state: State) -> int:
        return 0


def explore_rosters(case: RosterCase, views: type[Views] = Views) -> CheckReport:
    """Explore all states of the case."""
    return Explorer(cast(Any, case), RosterModel(case, views)).run()


def forgotten(known: dict[int, Value]) -> list[Name]:
    """Who was a member of some version, and is neither a member nor lingering in the last one."""
    _, _, members, lingering, _ = known[max(known)]
    ever = {member[:2] for value in known.values() for member in value[2]}
    return sorted(ever.difference([member[:2] for member in members], lingering))


EXCLUDE = (0, "exclude 3")
RIVAL = (1, "take_over")
ANOTHER = (1, "change")
CASES = {
    "a short lease": RosterCase((EXCLUDE, (0, "serve"), (3, "beat")), ticks=1),
    "one leader excludes": RosterCase((EXCLUDE, (0, "serve"), (3, "beat")), ticks=2),
    "a slow clock": RosterCase((EXCLUDE, (0, "serve"), (3, "beat")), ticks=3, slow=1, wait=2),
    "a rival takes over": RosterCase((EXCLUDE, RIVAL, (1, "exclude 3"))),
    "the same, one message doubled": RosterCase((EXCLUDE, RIVAL, (1, "exclude 3")), dups=1),
    "a rival wants another": RosterCase((EXCLUDE, RIVAL, ANOTHER)),
    "a voter was replaced": RosterCase(
        (EXCLUDE, (0, "serve"), (3, "beat")), ticks=1, nodes=5, before=((0, "voters 0 1 4", (2, 3)),)
    ),
    "a rival goes on": RosterCase(((0, "change"), RIVAL, ANOTHER, ANOTHER), nodes=3, last=3, before=()),
    "five voters, and a leader that is told": RosterCase(
        ((0, "change"),),
        nodes=5,
        voters=(0, 1, 2, 3, 4),
        before=((0, "change", (1, 3, 4)), (1, "take_over", (0, 2)), (1, "change", (0, 2))),
        last=3,
    ),
    "voters are added": RosterCase(
        ((1, "voters 0 1 2"), ANOTHER, (0, "take_over"), (0, "change")),
        nodes=3,
        voters=(1,),
        leader=1,
        last=3,
        before=(),
    ),
}
