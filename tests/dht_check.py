"""The checker over the strawman and Sigma: replica i is at node i, and the first nodes are clients as well.

Bounds: no leases, no second questions (`retry` and `resend` 0): nothing waits for a clock, and clocks stand still.
A `life` is drawn out of two where there is a reset: before it the first, after it the second, since two lives that are
alike are not what is looked for.
"""

from __future__ import annotations

from typing import Any

from fairgate.check.case import Case
from fairgate.check.explore import Explorer, Report
from fairgate.check.model import Model, State, Successor
from fairgate.core.ids import NIL
from fairgate.core.kbr import Door
from fairgate.core.keyspace import place_of
from fairgate.core.setup import Setup
from fairgate.protocols.sigma import Sigma
from fairgate.protocols.strawman import Strawman

RESETS = 4  # the place of that budget


def placed(protocol: type[Strawman]) -> type[Strawman]:
    """The protocol with replica i at node i."""

    class Placed(protocol):  # type: ignore[misc, valid-type]
        def __init__(self, me: int, setup: Setup, out: Door) -> None:
            protocol.__init__(self, me, setup, out)
            self.voters = tuple([place_of(i) for i in range(len(self.voters))])

    return Placed


class Placement(Model):
    def __init__(self, case: Case, protocol: type[Strawman], clients: int) -> None:
        self.clients = clients
        super().__init__(case, placed(protocol))

    def first(self) -> State:
        state = list(super().first())
        for me in range(self.clients, self.n):
            state[self.n + me] = self.status(me, 0, 0, "idle", NIL)
        return tuple(state)

    def successors(self, state: State) -> list[Successor]:
        """Clocks stand still, and lives are numbered by the resets so far."""
        budgets = self.things[state[self.at_budgets]]
        life = self.case.resets - budgets[RESETS]
        return [
            found
            for found in super().successors(state)
            if found[0][0] != "tick" and all(choice == life for choice in found[0][3])
        ]


def explored(
    protocol: type[Strawman] = Sigma,
    nodes: int = 3,
    clients: int = 2,
    replicas: int = 3,
    quorum: int = 2,
    most_states: int | None = None,
    options: dict[str, Any] | None = None,
    **bounds: Any,
) -> Report:
    lives = bounds.get("resets", 0) + 1
    untimed = {"lease": 0, "retry": 0, "resend": 0, "prime": False, "lives": lives}
    case = Case(
        protocol.about.name,
        nodes=nodes,
        ticks=1,
        options={**untimed, "replicas": replicas, "quorum": quorum, **(options or {})},
        **bounds,
    )
    return Explorer(case, Placement(case, protocol, clients)).run(most_states=most_states)
