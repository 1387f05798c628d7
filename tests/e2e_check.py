"""The checker over End-to-End on a circle of nodes that know the next one only: up to three hops among four nodes."""

from __future__ import annotations

from typing import Any

from fairgate.check.case import Case
from fairgate.check.explore import Explorer, Report
from fairgate.check.model import IDLE, Model, State, Successor
from fairgate.check.steps import Steps
from fairgate.check.tables import Table
from fairgate.core.ids import NIL
from fairgate.core.layers import over
from fairgate.overlay.gates import Gates
from fairgate.protocols.e2e import E2E
from tests.routes import Circle


class Circled(Model):
    """The first `clients` nodes ask; the others are on the way, or replicas."""

    def __init__(self, case: Case, protocol: type[E2E], clients: int) -> None:
        super().__init__(case, protocol)
        self.clients = clients
        self.table = Table()
        self.things = self.table.things
        make: Any = over(Circle, over(Gates, protocol))  # type: ignore[arg-type]
        self.steps = Steps(make, self.setup, self.table)
        self.fresh = [self.steps.first_key(me) for me in range(self.n)]

    def first(self) -> State:
        state = list(super().first())
        for me in range(self.clients, self.n):
            state[self.n + me] = self.status(me, 0, 0, IDLE, NIL)
        return tuple(state)

    def successors(self, state: State) -> list[Successor]:
        """Nothing in it goes by the clock."""
        return [found for found in super().successors(state) if found[0][0] != "tick"]


def explored(
    protocol: type[E2E] = E2E,
    nodes: int = 4,
    clients: int = 2,
    replicas: int = 1,
    quorum: int = 0,
    most_states: int | None = None,
    **bounds: Any,
) -> Report:
    case = Case("e2e", nodes=nodes, options={"replicas": replicas, "quorum": quorum}, **bounds)
    return Explorer(case, Circled(case, protocol, clients)).run(most_states=most_states)
