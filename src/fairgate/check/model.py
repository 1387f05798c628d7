"""The states of a case and the steps between them.

A state is one flat tuple of small numbers: the key of each node, the status of each node, the budgets
left, then the messages under way. Statuses: (requests left, requests made, phase, slot). Messages to a
node that is down are dropped at once: nobody could tell the difference.
"""

from collections.abc import Iterator
from typing import Any

from fairgate.check.case import Case
from fairgate.check.steps import Outcome, Steps
from fairgate.check.tables import Table
from fairgate.core.ids import NIL
from fairgate.core.mutex import Mutex
from fairgate.core.setup import Setup

State = tuple[int, ...]
Action = tuple[str, int, Any, tuple[int, ...]]  # what, to whom, with what, and the choices made
Successor = tuple[Action, State, str]  # and the property that broke, or ""
Status = tuple[int, int, str, int]

IDLE, WAITING, INSIDE, DOWN = "idle", "waiting", "inside", "down"
BUDGETS = ("cancels", "losses", "dups", "crashes", "resets")
CANCELS, LOSSES, DUPS, CRASHES, RESETS = range(5)


class Model:
    def __init__(self, case: Case, protocol: type[Mutex] | None = None) -> None:
        """`protocol` stands in for the registered one of that name: a mutant, or one that is being written."""
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
        self.setup = Setup(tuple(range(case.nodes)), case.k, options=case.options)
        self.steps = Steps(protocol, self.setup)
        self.fresh = [self.steps.first_key(me) for me in range(self.n)]  # keys of nodes that know nothing yet
        self.statuses = Table()
        self.timed = self.steps.timed
        self.clocks = Table()  # ticks that each node has lived through
        self.histories = Table()  # (last fence of each slot, what detectors have said of the crashed)
        self.at_budgets = 2 * self.n
        self.at_history = self.at_budgets + len(BUDGETS)
        self.at_clock = self.at_history + 1
        self.at_flight = self.at_clock + 1

    # The first state.

    def first(self) -> State:
        keys = self.fresh
        idle = self.statuses.number((self.case.requests, 0, IDLE, NIL))
        budgets = [self.case.cancels, self.case.losses, self.case.dups, self.case.crashes, self.case.resets]
        if self.case.network != "lossy":
            budgets[LOSSES] = 0
        if self.case.network != "dup":
            budgets[DUPS] = 0
        history = self.histories.number(((NIL,) * self.k, frozenset()))
        clock = self.clocks.number((0,) * self.n)
        state: State = (*keys, *([idle] * self.n), *budgets, history, clock)
        for me in range(self.n):
            state = self.only(self.after(state, me, self.steps.call(state[me], "start"), ("start", me, None)))
        return self.settled(state) if self.listens else state

    def settled(self, state: State) -> State:
        """Everybody trusts everybody and the initialization is over: where RF's theorem begins."""
        for me in range(self.n):
            for peer in range(self.n):
                if peer != me:
                    outcomes = self.steps.call(state[me], "trust", peer, "T")
                    state = self.only(self.after(state, me, outcomes, ("trust", me, (peer, "T"))))
        while len(state) > self.at_flight:
            state = next(iter(self.deliveries(state)))[1]
        return state

    @staticmethod
    def only(successors: list[Successor]) -> State:
        ((_, state, broken),) = successors
        if broken:
            raise AssertionError(broken)
        return state

    # What can happen next.

    def successors(self, state: State) -> Iterator[Successor]:
        due = self.due(state) if self.timed else []
        if due:  # whoever's time has come acts before anything else can happen
            for me, name in due:
                yield from self.after(state, me, self.steps.call(state[me], "timer", name), ("timer", me, name))
        else:
            yield from self.other_successors(state)

    def other_successors(self, state: State) -> Iterator[Successor]:
        yield from self.deliveries(state)
        budgets = state[self.at_budgets : self.at_history]
        for me in range(self.n):
            left, made, phase, _ = self.statuses.things[state[self.n + me]]
            if phase == IDLE and left > 0:
                yield from self.acquire(state, me, left, made)
            elif phase == INSIDE:
                yield from self.leave(state, me, "release", made)
            if phase in (WAITING, INSIDE) and budgets[CANCELS] > 0:
                yield from self.leave(self.spend(state, CANCELS), me, "cancel", made)
            if phase != DOWN and budgets[CRASHES] > 0 and me in self.mortal:
                yield ("crash", me, None, ()), self.crash(self.spend(state, CRASHES), me), ""
            if phase != DOWN and budgets[RESETS] > 0:
                yield from self.reset(self.spend(state, RESETS), me)
        if budgets[LOSSES] > 0:
            yield from self.lose(state)
        if budgets[DUPS] > 0:
            yield from self.duplicate(state)
        if self.listens:
            yield from self.detect(state)
        if self.timed:
            yield from self.tick(state)

    # Time.

    def up(self, state: State) -> list[int]:
        return [me for me in range(self.n) if self.statuses.things[state[self.n + me]][2] != DOWN]

    def due(self, state: State) -> list[tuple[int, str]]:
        return [(me, name) for me in self.up(state) for name, left in self.steps.armed(state[me]) if left <= 0]

    def tick(self, state: State) -> Iterator[Successor]:
        """A clock goes on, no further than `skew` ahead of the slowest; with no skew, all clocks at once."""
        clock, up = self.clocks.things[state[self.at_clock]], self.up(state)
        slowest = min(clock[me] for me in up)
        for movers in [[me] for me in up] if self.case.skew else [up]:
            if all(clock[me] < min(self.case.ticks, slowest + max(1, self.case.skew)) for me in movers):
                later = list(state)
                for me in movers:
                    later[me] = self.steps.later(state[me], self.case.tick)
                later[self.at_clock] = self.clocks.number(tuple(c + (me in movers) for me, c in enumerate(clock)))
                yield ("tick", movers[0] if self.case.skew else NIL, None, ()), tuple(later), ""

    def cut_off(self, state: State) -> bool:
        """Is it only the end of the clocks that keeps things from going on?"""
        return self.timed and any(self.steps.armed(state[me]) for me in self.up(state))

    def flight_choices(self, state: State) -> Iterator[tuple[int, int]]:
        """(place, message) of everything that may come next; of equal ones, and of a fifo channel, the first."""
        seen = set()
        for place in range(self.at_flight, len(state)):
            message = state[place]
            mark = self.steps.messages.things[message][:2] if self.fifo else message
            if mark not in seen:
                seen.add(mark)
                yield place, message

    def faulty_choices(self, state: State) -> Iterator[tuple[int, int]]:
        """What the network may lose or double: not what a node sends to itself."""
        for place, message in self.flight_choices(state):
            src, dst, _ = self.steps.messages.things[message]
            if src != dst:
                yield place, message

    def deliveries(self, state: State) -> Iterator[Successor]:
        for place, message in self.flight_choices(state):
            dst = self.steps.messages.things[message][1]
            rest = state[:place] + state[place + 1 :]
            yield from self.after(rest, dst, self.steps.deliver(state[dst], message), ("message", dst, message))

    def acquire(self, state: State, me: int, left: int, made: int) -> list[Successor]:
        asking = self.with_status(state, me, (left - 1, made + 1, WAITING, NIL))
        return self.after(asking, me, self.steps.call(state[me], "acquire", made + 1), ("acquire", me, made + 1))

    def leave(self, state: State, me: int, event: str, made: int) -> list[Successor]:
        left = self.statuses.things[state[self.n + me]][0]
        idle = self.with_status(state, me, (left, made, IDLE, NIL))
        return self.after(idle, me, self.steps.call(state[me], event, made), (event, me, made))

    def crash(self, state: State, me: int) -> State:
        left, made, _, _ = self.statuses.things[state[self.n + me]]
        down = self.with_status(state, me, (left, made, DOWN, NIL))
        flight = [m for m in down[self.at_flight :] if self.steps.messages.things[m][1] != me]
        return (*down[: self.at_flight], *flight)

    def reset(self, state: State, me: int) -> list[Successor]:
        """Back at once with nothing in its memory; what it had asked for is forgotten."""
        left, made, _, _ = self.statuses.things[state[self.n + me]]
        idle = self.with_status(state, me, (left, made, IDLE, NIL))
        anew = (*idle[:me], self.fresh[me], *idle[me + 1 :])
        return self.after(anew, me, self.steps.call(anew[me], "start"), ("reset", me, None))

    def lose(self, state: State) -> Iterator[Successor]:
        for place, message in self.faulty_choices(state):
            poorer = self.spend(state, LOSSES)
            yield ("lose", NIL, message, ()), poorer[:place] + poorer[place + 1 :], ""

    def duplicate(self, state: State) -> Iterator[Successor]:
        for _, message in self.faulty_choices(state):
            yield ("duplicate", NIL, message, ()), self.sending(self.spend(state, DUPS), (message,)), ""

    def detect(self, state: State) -> Iterator[Successor]:
        """Detectors come to suspect who is down, one listener and one class at a time."""
        fences, told = self.histories.things[state[self.at_history]]
        phases = [self.statuses.things[state[self.n + me]][2] for me in range(self.n)]
        for peer in range(self.n):
            for me in range(self.n):
                if phases[peer] == DOWN and phases[me] != DOWN and (me, peer) not in told:
                    history = self.histories.number((fences, told | {(me, peer)}))
                    knowing = (*state[: self.at_history], history, *state[self.at_clock :])
                    outcomes = self.steps.call(state[me], "suspect", peer, "T")
                    yield from self.after(knowing, me, outcomes, ("suspect", me, (peer, "T")))

    # What a step does to the state.

    def after(
        self, state: State, me: int, outcomes: tuple[Outcome, ...], what: tuple[str, int, Any]
    ) -> list[Successor]:
        found = []
        for outcome in outcomes:
            changed = (*state[:me], outcome.key, *state[me + 1 :])
            broken = outcome.broken
            if outcome.sent:
                changed = self.sending(changed, outcome.sent)
            if outcome.granted is not None:
                changed, wrong = self.enter(changed, me, *outcome.granted)
                broken = broken or wrong
            if outcome.lost:
                left, made, _, _ = self.statuses.things[changed[self.n + me]]
                changed = self.with_status(changed, me, (left, made, IDLE, NIL))
            found.append(((*what, outcome.choices), changed, broken))
        return found

    def sending(self, state: State, sent: tuple[int, ...]) -> State:
        things, statuses = self.steps.messages.things, self.statuses.things
        up = [m for m in sent if statuses[state[self.n + things[m][1]]][2] != DOWN]
        flight = [*state[self.at_flight :], *up]
        if self.fifo:
            flight.sort(key=lambda m: things[m][:2])  # in order in each channel, and it does not matter between them
        else:
            flight.sort()
        return (*state[: self.at_flight], *flight)

    def enter(self, state: State, me: int, request: int, slot: int, fence: int) -> tuple[State, str]:
        left, made, phase, _ = self.statuses.things[state[self.n + me]]
        if phase != WAITING or request != made:
            return state, f"grant: node {me} was granted request {request}, which does not wait"
        others = [self.statuses.things[number] for number in state[self.n : self.at_budgets]]
        inside = sum(phase == INSIDE for _, _, phase, _ in others) + 1
        if inside > self.k:
            return state, f"k: {inside} inside, k is {self.k} (node {me} came last)"
        if self.slots and not 0 <= slot < self.k:
            return state, f"slot: node {me} was given slot {slot}, there are 0..{self.k - 1}"
        if self.slots and any(phase == INSIDE and taken == slot for _, _, phase, taken in others):
            return state, f"slot: node {me} was given slot {slot}, which is taken"
        state = self.with_status(state, me, (left, made, INSIDE, slot))
        return self.with_fence(state, slot, fence) if self.slots else (state, "")

    def with_fence(self, state: State, slot: int, fence: int) -> tuple[State, str]:
        fences, told = self.histories.things[state[self.at_history]]
        if fence <= fences[slot]:
            return state, f"fence: slot {slot} gave fence {fence} after {fences[slot]}"
        history = self.histories.number(((*fences[:slot], fence, *fences[slot + 1 :]), told))
        return (*state[: self.at_history], history, *state[self.at_clock :]), ""

    def with_status(self, state: State, me: int, status: Status) -> State:
        at = self.n + me
        return (*state[:at], self.statuses.number(status), *state[at + 1 :])

    def spend(self, state: State, budget: int) -> State:
        at = self.at_budgets + budget
        return (*state[:at], state[at] - 1, *state[at + 1 :])

    # What the explorer asks.

    def pending(self, state: State) -> list[int]:
        """Who waits."""
        return [me for me in range(self.n) if self.statuses.things[state[self.n + me]][2] == WAITING]
