"""The states of a case and the steps between them.

A state is a flat tuple of numbers, each of which stands for an interned thing (interning.py). In this order: the key
of each node, the status of each node, the budgets left, the history (the last fence of each slot, and what nodes were
told from outside), the clocks, then the messages in flight. A message to a crashed node is dropped as soon as it is
sent: no node could tell the difference.
"""

from collections.abc import Iterator
from typing import Any

from fairgate.check.case import Case
from fairgate.check.interning import Interned
from fairgate.check.steps import StepOutcome, Steps
from fairgate.check.symmetry import renamings
from fairgate.core.ids import NIL
from fairgate.core.mutex import Mutex
from fairgate.core.properties import no_slots
from fairgate.core.setup import Setup
from fairgate.errors import BadInput
from fairgate.registry import with_layers

State = tuple[int, ...]
Action = tuple[str, int, Any, tuple[int, ...]]  # event, node it happens to, argument, choices the node made
Successor = tuple[Action, State, str]  # an action, the state after it, and the property that it broke, or ""

IDLE, WAITING, INSIDE, DOWN = "idle", "waiting", "inside", "down"
CANCELS, LOSSES, DUPS, CRASHES, RESETS = range(5)  # indexes into the budgets
MASK = (1 << 63) - 1


class Model:
    opened: tuple[Action, ...] = ()  # what a subclass has done before the first state
    starts_quiet = False  # are all messages that nodes send when they start delivered before the first state?

    def __init__(self, case: Case, protocol: type[Mutex] | None = None, symmetry: bool = False) -> None:
        """`protocol` replaces the registered protocol of that name, for example by a mutant.

        Raises BadInput if the case is not valid, or if the protocol does not support `symmetry`.
        """
        registered = case.check()
        protocol = protocol or registered
        self.case = case
        self.n = case.nodes
        self.k = case.k
        self.slots = protocol.about.slots
        self.listens = bool(protocol.about.detectors)
        root_stays = "crash of a client" in protocol.about.survives
        self.mortal = [me for me in range(case.nodes) if me > 0 or not root_stays]
        self.fifo = case.network == "fifo"
        self.again = case.again
        self.setup = Setup(tuple(range(case.nodes)), case.k, options=case.options)
        self.table = Interned()
        self.things = self.table.things
        self.steps = self.make_steps(protocol)
        self.fresh = [self.steps.first_key(me) for me in range(self.n)]  # keys of newly made nodes
        self.timed = self.steps.timed
        self.ticks = [case.tick + case.tick * rate // 1_000_000 for rate in case.rates or (0,) * self.n]  # ns, by node
        self.at_budgets = 2 * self.n
        self.at_history = self.at_budgets + 1
        self.at_clock = self.at_history + 1
        self.at_flight = self.at_clock + 1
        if symmetry:
            self.find_renamings(protocol)

    def make_steps(self, protocol: type[Mutex]) -> Steps:
        return Steps(with_layers(protocol), self.setup, self.table)

    # The first state.

    def nothing_told(self) -> tuple[Any, ...]:
        """The initial record of what nodes were told from outside: here, pairs of (listener, suspected peer)."""
        return ()

    def first(self) -> State:
        case = self.case
        losses = case.losses if case.network == "lossy" else 0
        dups = case.dups if case.network == "dup" else 0
        state: State = (
            *self.fresh,
            *[self.status(me, case.requests, 0, IDLE, NIL) for me in range(self.n)],
            self.table.number("budgets", (case.cancels, losses, dups, case.crashes, case.resets)),
            self.table.number("history", ((NIL,) * self.k, self.nothing_told())),  # last fence of each slot
            self.table.number("clock", (0,) * self.n),  # ticks elapsed at each node
        )
        for me in range(self.n):
            state = self.forced(state, me, "start", ())
        if self.listens:
            return self.initialised(state)
        return self.quiet(state) if self.starts_quiet else state

    def initialised(self, state: State) -> State:
        """The state in which every node trusts every other and initialization is over: RF's theorem starts there."""
        for me in range(self.n):
            for peer in range(self.n):
                if peer != me:
                    state = self.forced(state, me, "trust", (peer, "T"))
        return self.quiet(state)

    def quiet(self, state: State) -> State:
        """The state after all messages in flight were delivered, and those that followed."""
        while len(state) > self.at_flight:
            found: list[Successor] = []
            self.deliveries(found, state)
            state = found[0][1]
        return state

    def forced(self, state: State, me: int, event: str, arguments: tuple[Any, ...]) -> State:
        """The state after a step on the way to the first state. The step must have one outcome and break nothing."""
        found: list[Successor] = []
        self.after(found, list(state), me, self.steps.call(state[me], event, arguments), (event, me, arguments))
        ((_, after, broken),) = found
        if broken:
            raise AssertionError(broken)
        return after

    def find_renamings(self, protocol: type[Mutex]) -> None:
        ids = protocol.about.ids
        if not ids:
            raise BadInput(f"{protocol.about.name} does not declare its peers interchangeable: symmetry cannot be used")
        begin = {*self.fresh, *self.first()}
        things = [(self.table.kinds[number], self.things[number]) for number in sorted(begin)]
        self.table.rename(renamings(self.n, self.setup.root, things, ids), ids)

    # What can happen next.

    def successors(self, state: State) -> list[Successor]:
        found: list[Successor] = []
        due = self.due(state) if self.timed else None
        if due:  # timers that are due fire before anything else can happen
            for me, name in due:
                self.after(found, list(state), me, self.steps.call(state[me], "timer", (name,)), ("timer", me, name))
            return found
        self.deliveries(found, state)
        self.inputs(found, state)
        if self.listens:
            self.detect(found, state)
        if self.timed:
            self.tick(found, state)
        return found

    def deliveries(self, found: list[Successor], state: State) -> None:
        before = NIL
        for place in range(self.at_flight, len(state)):
            message = state[place]
            order = self.order(message)
            if order != before:  # deliver only the first of equal messages, or of a fifo channel
                before = order
                rest = list(state)
                del rest[place]
                dst = self.things[message][1]
                self.after(found, rest, dst, self.steps.deliver(state[dst], message), ("message", dst, message))

    def inputs(self, found: list[Successor], state: State) -> None:
        """What users do, and the faults of nodes and network for which the case has budget left."""
        cancels, losses, dups, crashes, resets = self.things[state[self.at_budgets]]
        for me in range(self.n):
            number = state[self.n + me]
            _, left, made, phase, _ = self.things[number]
            if phase == IDLE and left > 0:
                self.ask(found, state, me, left, made)
            elif phase == INSIDE:
                self.leave(found, list(state), me, "release")
                if self.again and left > 0:
                    self.ask_again(found, state, me, left, made)
            if cancels > 0 and phase in (WAITING, INSIDE):
                self.leave(found, self.spent(state, CANCELS), me, "cancel")
            if crashes > 0 and phase != DOWN and me in self.mortal:
                found.append((("crash", me, None, ()), self.crashed(self.spent(state, CRASHES), me), ""))
            if resets > 0 and phase != DOWN:
                self.reset(found, self.spent(state, RESETS), me)
        if losses > 0:
            self.lose(found, state)
        if dups > 0:
            self.duplicate(found, state)

    def ask(self, found: list[Successor], state: State, me: int, left: int, made: int) -> None:
        asking = list(state)
        asking[self.n + me] = self.status(me, left - 1, made + 1, WAITING, NIL)
        outcomes = self.steps.call(state[me], "acquire", (made + 1,))
        self.after(found, asking, me, outcomes, ("acquire", me, made + 1))

    def ask_again(self, found: list[Successor], state: State, me: int, left: int, made: int) -> None:
        asking = list(state)
        asking[self.n + me] = self.status(me, left - 1, made + 1, WAITING, NIL)
        outcomes = self.steps.call(state[me], "again", (made, made + 1))
        self.after(found, asking, me, outcomes, ("again", me, made + 1))

    def leave(self, found: list[Successor], state: list[int], me: int, event: str) -> None:
        made = self.become(state, me, IDLE)
        self.after(found, state, me, self.steps.call(state[me], event, (made,)), (event, me, made))

    def crashed(self, state: list[int], me: int) -> State:
        self.become(state, me, DOWN)
        flight = [message for message in state[self.at_flight :] if self.things[message][1] != me]
        return (*state[: self.at_flight], *flight)

    def reset(self, found: list[Successor], state: list[int], me: int) -> None:
        """The node loses its memory, including its request, and restarts at once."""
        self.become(state, me, IDLE)
        self.after(found, state, me, self.steps.call(self.fresh[me], "start", ()), ("reset", me, None))

    def faulty_choices(self, state: State) -> Iterator[tuple[int, int]]:
        """(place, message) of each message that the network may lose or duplicate; not those a node sends itself."""
        before = NIL
        for place in range(self.at_flight, len(state)):
            message = state[place]
            src, dst, _ = self.things[message]
            if src != dst and self.order(message) != before:
                yield place, message
            before = self.order(message)

    def lose(self, found: list[Successor], state: State) -> None:
        for place, message in self.faulty_choices(state):
            poorer = self.spent(state, LOSSES)
            del poorer[place]
            found.append((("lose", NIL, message, ()), tuple(poorer), ""))

    def duplicate(self, found: list[Successor], state: State) -> None:
        for _, message in self.faulty_choices(state):
            richer = self.spent(state, DUPS)
            self.send(richer, message)
            found.append((("duplicate", NIL, message, ()), tuple(richer), ""))

    def detect(self, found: list[Successor], state: State) -> None:
        """A live node's failure detector starts to suspect a crashed node: one such pair per step."""
        fences, told = self.things[state[self.at_history]]
        up = self.up(state)
        for peer in range(self.n):
            for me in up:
                if peer not in up and (me, peer) not in told:
                    knowing = list(state)
                    knowing[self.at_history] = self.table.number(
                        "history", (fences, tuple(sorted([*told, (me, peer)])))
                    )
                    outcomes = self.steps.call(state[me], "suspect", (peer, "T"))
                    self.after(found, knowing, me, outcomes, ("suspect", me, (peer, "T")))

    # Time.

    def up(self, state: State) -> list[int]:
        return [me for me in range(self.n) if self.things[state[self.n + me]][3] != DOWN]

    def due(self, state: State) -> list[tuple[int, str]]:
        return [(me, name) for me in self.up(state) for name, left in self.steps.armed(state[me]) if left <= 0]

    def tick(self, found: list[Successor], state: State) -> None:
        """A clock advances by its tick, to at most `skew` ahead of the slowest; without skew, all clocks together."""
        clock, up = self.things[state[self.at_clock]], self.up(state)
        slowest = min([clock[me] for me in up])
        for movers in [[me] for me in up] if self.case.skew else [up]:
            if max([clock[me] for me in movers]) < min(self.case.ticks, slowest + max(1, self.case.skew)):
                later = list(state)
                for me in movers:
                    later[me] = self.steps.later(state[me], self.ticks[me])
                clocks = tuple([c + (me in movers) for me, c in enumerate(clock)])
                later[self.at_clock] = self.table.number("clock", clocks)
                found.append((("tick", movers[0] if self.case.skew else NIL, None, ()), tuple(later), ""))

    def cut_off(self, state: State) -> bool:
        """Could the run continue if the clocks could? Then the state is not a dead end."""
        return self.timed and any(self.steps.armed(state[me]) for me in self.up(state))

    # What a step does to the state.

    def after(
        self,
        found: list[Successor],
        state: list[int],
        me: int,
        outcomes: tuple[StepOutcome, ...],
        what: tuple[str, int, Any],
    ) -> None:
        """Append the successors to `found`, one per outcome. May change `state`: callers do not use it afterwards."""
        for outcome in outcomes:
            changed = list(state) if len(outcomes) > 1 else state
            changed[me] = outcome.key
            broken = outcome.broken
            for message in outcome.sent:
                self.send(changed, message)
            if outcome.granted is not None:
                wrong = self.enter(changed, me, outcome.granted)
                broken = broken or wrong
            if outcome.lost:
                self.become(changed, me, IDLE)
            found.append(((what[0], what[1], what[2], outcome.choices), tuple(changed), broken))

    def order(self, message: int) -> int:
        """The sort key of messages in flight; puts equal messages, or those of a fifo channel, next to each other."""
        if self.fifo:
            src, dst, _ = self.things[message]
            channel: int = src * self.n + dst
            return channel
        return self.table.hashes[message]

    def send(self, state: list[int], message: int) -> None:
        """Insert the message after all that have a lower or equal order: a fifo channel keeps the order of sending."""
        dst = self.things[message][1]
        number = state[self.n + dst]
        if self.things[number][3] == DOWN:
            return
        order = self.order(message)
        place = len(state)
        while place > self.at_flight and order < self.order(state[place - 1]):
            place -= 1
        state.insert(place, message)

    def enter(self, state: list[int], me: int, permit: tuple[int, int, int]) -> str:
        """Let the node enter; returns the property that the grant breaks, or "" if it breaks none."""
        request, slot, fence = permit
        number = state[self.n + me]
        _, left, made, phase, _ = self.things[number]
        if phase != WAITING or request != made:
            return f"grant: node {me} was granted request {request}, which does not wait"
        taken = []
        for other in range(self.n):
            number = state[self.n + other]
            status = self.things[number]
            if status[3] == INSIDE:
                taken.append(status[4])
        if len(taken) >= self.k:
            return f"k: {len(taken) + 1} inside, k is {self.k} (node {me} came last)"
        if not self.slots and (slot != NIL or fence != NIL):
            return no_slots(f"node {me}", slot, fence)
        if self.slots and not 0 <= slot < self.k:
            return f"slot: node {me} was given slot {slot}, there are 0..{self.k - 1}"
        if self.slots and slot in taken:
            return f"slot: node {me} was given slot {slot}, which is taken"
        state[self.n + me] = self.status(me, left, made, INSIDE, slot)
        return self.raise_fence(state, slot, fence) if self.slots else ""

    def raise_fence(self, state: list[int], slot: int, fence: int) -> str:
        fences, told = self.things[state[self.at_history]]
        if fence <= fences[slot]:
            return f"fence: slot {slot} gave fence {fence} after {fences[slot]}"
        risen = (*fences[:slot], fence, *fences[slot + 1 :])
        state[self.at_history] = self.table.number("history", (risen, told))
        return ""

    def status(self, me: int, left: int, made: int, phase: str, slot: int) -> int:
        """The number of a node's status: requests left, requests made, the phase of the last one, and its slot."""
        return self.table.number("status", (me, left, made, phase, slot))

    def become(self, state: list[int], me: int, phase: str) -> int:
        """Set the node's phase and take away its slot; returns how many requests it has made."""
        _, left, made, _, _ = self.things[state[self.n + me]]
        state[self.n + me] = self.status(me, left, made, phase, NIL)
        requests: int = made
        return requests

    def spent(self, state: State, budget: int) -> list[int]:
        budgets = self.things[state[self.at_budgets]]
        poorer = list(state)
        less = (*budgets[:budget], budgets[budget] - 1, *budgets[budget + 1 :])
        poorer[self.at_budgets] = self.table.number("budgets", less)
        return poorer

    # Queries of the explorer.

    def waiting(self, state: State) -> int:
        """A bit mask of the waiting nodes."""
        mask = 0
        for me in range(self.n):
            number = state[self.n + me]
            if self.things[number][3] == WAITING:
                mask |= 1 << me
        return mask

    def fingerprint(self, state: State) -> int:
        """A 63-bit sum of the hashes of the state's things; it does not depend on how the things are numbered.

        With symmetry it is the least of the sums under all renamings, so that symmetric states have the same one.
        """
        least = self.sum_of(state, self.table.hashes)
        for row in self.table.rows:
            total = self.sum_of(state, row)
            least = min(least, total)
        return least

    def sum_of(self, state: State, hashes: list[int]) -> int:
        """The weighted sum of hashes. Among neighbours of equal order each message weighs more than the one before."""
        total = 0
        for at in range(self.at_flight):
            number = state[at]
            more = hashes[number]
            total += more
        before = NIL
        weight = 1
        for at in range(self.at_flight, len(state)):
            message = state[at]
            order = self.order(message)
            weight = weight + 2 if order == before else 1
            before = order
            more = hashes[message]
            total += more * weight
        return total & MASK
