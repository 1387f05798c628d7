"""The model of a gate whose membership changes: every node runs above recovery/regenerate.py.

How nodes agree on views is not modelled; the model makes the views and delivers them. As at a live gate, no node has
a token before its first view, and each node learns of a view at a moment of its own. A node that requests before it is
a member joins in the next view. A node that crashes is left out of the next view. All nodes see views in the same
order, but a node may skip some. No view has fewer than k members: a crash that would leave fewer makes no new view.
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

Told = tuple[tuple[tuple[int, ...], ...], tuple[int, ...]]  # the views so far; the number of the last one each node has


class CensusModel(Model):
    def __init__(self, case: Case, protocol: type[Mutex] | None = None) -> None:
        refuse(case)
        super().__init__(case, protocol)

    def make_steps(self, protocol: type[Mutex]) -> Steps:
        """Tokens are not counted: those of an epoch vanish with it, and the next epoch makes new ones."""
        return Steps(newcomers(with_layers(protocol, ("regenerate",))), self.setup, self.table, conserving=False)

    def nothing_told(self) -> Told:
        members = tuple(range(self.n - self.case.joins))
        return (members,), (0,) * self.n

    def successors(self, state: State) -> list[Successor]:
        found = super().successors(state)
        fences, (views, known) = self.things[state[self.at_history]]
        for me in self.up(state):
            for number in range(known[me] + 1, len(views) + 1):
                knowing = list(state)
                told = (views, (*known[:me], number, *known[me + 1 :]))
                knowing[self.at_history] = self.table.number("history", (fences, told))
                view = (number, views[number - 1], ())
                self.after(found, knowing, me, self.steps.call(state[me], "view", view), ("view", me, view))
            if me not in views[-1] and self.waiting(state) >> me & 1:
                joined = self.with_view(list(state), (*views[-1], me))
                found.append((("join", me, None, ()), tuple(joined), ""))
        return found

    def crashed(self, state: list[int], me: int) -> State:
        _, (views, _) = self.things[state[self.at_history]]
        left = tuple([member for member in views[-1] if member != me])
        if left != views[-1] and len(left) >= self.k:
            state = self.with_view(state, left)
        return super().crashed(state, me)

    def with_view(self, state: list[int], members: tuple[int, ...]) -> list[int]:
        fences, (views, known) = self.things[state[self.at_history]]
        state[self.at_history] = self.table.number("history", (fences, ((*views, members), known)))
        return state


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
