"""The model of a gate whose membership changes: every node runs above recovery/regenerate.py.

How nodes agree on views is not modelled; the model makes the views and delivers them. As at a live gate, no node has
a token before its first view, and each node learns of a view at a moment of its own. A node that requests before it is
a member joins in the next view. A node that crashes is left out of the next view. All nodes see views in the same
order, but a node may skip some. No view has fewer than k members: a crash that would leave fewer makes no new view.

An excluded node is alive: the next view has it as a ghost, and it goes on as if nothing had happened, until it learns
of its exclusion, or its lease is over ("expire"). Then it stops for good, and the next view is without that ghost. At
least one member is left. With exclusions, the exploration starts when the first census is over.
"""

from fairgate.check.case import Case
from fairgate.check.model import Model, State, Successor
from fairgate.check.steps import Steps
from fairgate.core.layers import MakeNode
from fairgate.core.mutex import Mutex
from fairgate.core.node import Node
from fairgate.core.outbox import Outbox
from fairgate.core.setup import Setup
from fairgate.errors import BadInput
from fairgate.recovery.regenerate import Regenerate
from fairgate.registry import with_layers

View = tuple[tuple[int, ...], tuple[int, ...]]  # members and ghosts
Told = tuple[tuple[View, ...], tuple[int, ...], int]  # the views so far; the last one of each node; exclusions left


class CensusModel(Model):
    def __init__(self, case: Case, protocol: type[Mutex] | None = None) -> None:
        refuse(case)
        super().__init__(case, protocol)

    def make_steps(self, protocol: type[Mutex]) -> Steps:
        """Tokens are not counted: those of an epoch vanish with it, and the next epoch makes new ones."""
        return Steps(newcomers(with_layers(protocol, ("regenerate",))), self.setup, self.table, conserving=False)

    def first(self) -> State:
        """With exclusions, the first census is over: there would be too many states otherwise."""
        self.opened = ()
        state = super().first()
        if self.case.exclusions:
            state = self.settled(state)
        return state

    def settled(self, state: State) -> State:
        """The state after all views and messages have arrived, and those that followed."""
        while found := [each for each in self.successors(state) if each[0][0] in ("view", "message")]:
            action, state, _ = found[0]
            self.opened = (*self.opened, action)
        return state

    def nothing_told(self) -> Told:
        members = tuple(range(self.n - self.case.joins))
        return ((members, ()),), (0,) * self.n, self.case.exclusions

    def successors(self, state: State) -> list[Successor]:
        found = super().successors(state)
        fences, (views, known, left) = self.things[state[self.at_history]]
        members, ghosts = views[-1]
        for me in self.up(state):
            for number in range(known[me] + 1, len(views) + 1):
                knowing = list(state)
                told = (views, (*known[:me], number, *known[me + 1 :]), left)
                knowing[self.at_history] = self.table.number("history", (fences, told))
                view = (number, *views[number - 1])
                self.after(found, knowing, me, self.steps.call(state[me], "view", view), ("view", me, view))
            if me not in members and me not in ghosts and self.waiting(state) >> me & 1:
                joined = self.with_view(list(state), ((*members, me), ghosts))
                found.append((("join", me, None, ()), tuple(joined), ""))
            if left > 0 and me in members and len(members) > 1:
                found.append((("exclude", me, None, ()), self.excluded(state, me), ""))
        for me in ghosts:
            found.append((("expire", me, None, ()), self.expired(state, me), ""))
        return found

    def crashed(self, state: list[int], me: int) -> State:
        _, (views, _, _) = self.things[state[self.at_history]]
        members, ghosts = views[-1]
        if me in members and len(members) > self.k:
            state = self.with_view(state, (without(members, me), ghosts))
        return super().crashed(state, me)

    def excluded(self, state: State, me: int) -> State:
        fences, (views, known, left) = self.things[state[self.at_history]]
        members, ghosts = views[-1]
        poorer = list(state)
        poorer[self.at_history] = self.table.number("history", (fences, (views, known, left - 1)))
        return tuple(self.with_view(poorer, (without(members, me), (*ghosts, me))))

    def expired(self, state: State, me: int) -> State:
        """The lease of this ghost is over."""
        _, (views, _, _) = self.things[state[self.at_history]]
        members, ghosts = views[-1]
        return super().crashed(self.with_view(list(state), (members, without(ghosts, me))), me)

    def with_view(self, state: list[int], view: View) -> list[int]:
        fences, (views, known, left) = self.things[state[self.at_history]]
        state[self.at_history] = self.table.number("history", (fences, ((*views, view), known, left)))
        return state


def without(members: tuple[int, ...], me: int) -> tuple[int, ...]:
    return tuple([member for member in members if member != me])


def newcomers(make: MakeNode) -> MakeNode:
    """Wrap `make` so that the nodes wait for their first view before they do anything."""

    def made(me: int, setup: Setup, out: Outbox) -> Node:
        node = make(me, setup, out)
        assert isinstance(node, Regenerate)
        node.wait_for_view()
        return node

    return made


def refuse(case: Case) -> None:
    if case.resets:
        raise BadInput("resets cannot be combined with census: a peer that lost its memory rejoins as a new peer")
    left = case.nodes - case.joins - case.crashes
    if left < case.k:
        raise BadInput(
            f"a view needs {case.k} members (k) and only {left} may be left: use more nodes, or fewer joins and crashes"
        )
