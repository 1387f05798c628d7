"""The model of agreed rosters (recovery/views.py): every order of votes, beats, changes and ticks of a few peers.

Two properties are checked in every state. *Agreement*: a version is the same roster, whoever has learned of it.
*Lease*: a member that a chosen roster has forgotten has no lease.

Messages arrive in any order, and any of them may never arrive, so loss and crashes need no steps of their own. Both
properties are about nodes, and a message in flight never keeps anything else from happening. So a state with more
messages and inputs left can do all that the same state with fewer can. That allows the following reductions.

- A step that changes no node and sends nothing is left out.
- A message is dropped as soon as its receiver ignores it and always will (`matters`). That it ignores it now is tried.
  Only that it always will is assumed, for reasons that `is_too_late` gives.
- A version is told by one message per receiver. A node that learns that a version was chosen tells all members at once,
  so until a member knows the version, such a message is in flight to it. It is the same message from every sender, so
  further ones are left out. So are those that say no more than that their sender knows less, or more.
- A node forgets what none of its later steps depends on (roster_nodes.py).
"""

from typing import Any, cast

from fairgate.check.explore import CheckReport, Explorer
from fairgate.check.interning import Interned
from fairgate.check.model import Model, State, Successor
from fairgate.check.roster_cases import Input, RosterCase
from fairgate.check.roster_nodes import Blank, Mute, steered
from fairgate.check.steps import StepOutcome, Steps
from fairgate.core.declare import merged_fields
from fairgate.core.message import Key
from fairgate.core.node import Node
from fairgate.core.outbox import Outbox
from fairgate.core.setup import Setup
from fairgate.recovery.agreed import Name, Value, names
from fairgate.recovery.ballots import MILLION, PREPARE
from fairgate.recovery.views import Views

VOTES = ("vw.prepare", "vw.promise", "vw.accept", "vw.accepted")
TELLING = ("vw.chosen", "vw.behind")
STATE = [field.name for field in merged_fields(Views) if field.is_state]
AT, VALUE, JOINED, GONE, UNTIL, PHASE, BALLOT, PROMISED, PROPOSAL, SENT = [
    1 + STATE.index(name)
    for name in ("at", "value", "joined", "gone", "until", "phase", "ballot", "promised", "proposal", "sent")
]


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
        self.mattering: dict[int, bool] = {}  # receiver's key, and message -> can it still have an effect?
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
        broken = outcome.broken
        if outcome.key != state[me]:
            before, now = self.things[state[me]][1], self.things[outcome.key][1]
            state[me] = outcome.key
            if now[AT] != before[AT]:
                broken = broken or self.learn(state, now[AT], now[VALUE])
            flight = [one for one in state[self.at_flight :] if self.things[one][1] != me or self.matters(one, state)]
            state[self.at_flight :] = flight
        elif not broken and not any(self.matters(one, state) for one in outcome.sent):
            return
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
        if not self.matters(message, state):
            return
        _, dst, key = self.things[message]
        if key[0] == "vw.chosen":
            message = self.table.number("message", (self.bounds.leader, dst, key))
            if message in state[self.at_flight :]:
                return
        order = self.order(message)
        place = len(state)
        while place > self.at_flight and order < self.order(state[place - 1]):
            place -= 1
        state.insert(place, message)

    def matters(self, message: int, state: list[int]) -> bool:
        """Can it still have an effect on its receiver, in this state or a later one?"""
        src, dst, fields = self.things[message]
        receiver = state[dst]
        found = self.mattering.get(receiver << 32 | message)
        if found is None:
            late = is_too_late(src, fields, self.things[receiver][1]) and self.is_ignored(receiver, message)
            found = not late and not (fields[0] in VOTES and fields[1] >= self.bounds.last)
            self.mattering[receiver << 32 | message] = found
        return found

    def is_ignored(self, receiver: int, message: int) -> bool:
        """Does the receiver do nothing now, except to say that it knows another version, or that a beat came?"""
        (outcome,) = self.steps.deliver(receiver, message)
        sent = [self.things[one][2] for one in outcome.sent]
        quiet = all(key[0] in TELLING or (key[0] == "vw.ack" and not key[3]) for key in sent)
        return outcome.key == receiver and not outcome.broken and quiet

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


def is_too_late(src: int, message: Key, receiver: Key) -> bool:
    """If the receiver ignores this message now, does it always?

    Versions, ballots and promises only rise, no ballot is used twice for the same version, and a member that is gone
    comes back as another. That receivers look at these things is what is explored, so it is not assumed here.
    """
    tag, about, *fields = message
    at, value, ballot = receiver[AT], receiver[VALUE], receiver[BALLOT]
    if tag == "vw.chosen":
        return cast(bool, about <= at)
    if tag in VOTES and about < at:
        return True
    if tag == "vw.promise":
        return cast(bool, receiver[PHASE] != PREPARE or fields[0] != ballot)
    if tag == "vw.accepted":
        return not receiver[PROPOSAL][0] or fields[0] != ballot
    if tag == "vw.nack":
        return cast(bool, fields[0] <= receiver[PROMISED])
    if tag == "vw.beat":
        _, gen, joined, *_ = fields
        return gen < value[0] or (joined <= at and (src, joined) not in names(value))
    if tag == "vw.ack":
        number, ok, _ = fields
        return not ok or number not in [known for known, _ in receiver[SENT]]
    return cast(bool, tag == "vw.behind")


def forgotten(known: dict[int, Value]) -> list[Name]:
    """Who was a member of some version, and is neither a member nor lingering in the last one."""
    _, _, members, lingering, _ = known[max(known)]
    ever = {member[:2] for value in known.values() for member in value[2]}
    return sorted(ever.difference([member[:2] for member in members], lingering))
