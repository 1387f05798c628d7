"""The checker on the strawman and Sigma: replica i is at node i, and the first nodes are also clients.

Bounds: no retries (`retry` and `resend` are 0). Without leases nothing depends on time, and the clocks stand still.
With resets, a node draws its `life` at random. Here it always draws the number of resets so far, because two equal
lives are not what these tests are about.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from fairgate.check.case import Case
from fairgate.check.explore import CheckReport, Explorer
from fairgate.check.model import Model, State, Successor
from fairgate.core.ids import NIL
from fairgate.core.kbr import Door
from fairgate.core.keyspace import place_of
from fairgate.core.mutex import Mutex
from fairgate.core.setup import Setup
from fairgate.protocols.sigma.protocol import Sigma
from fairgate.protocols.sigma.strawman import Strawman
from tests.support.sigma_quotient import Lives, Quotient

RESETS = 4  # index into the budgets


def placed(protocol: type[Strawman]) -> type[Strawman]:
    """The protocol with replica i at node i."""

    class Placed(protocol):  # type: ignore[misc, valid-type]
        def __init__(self, me: int, setup: Setup, out: Door) -> None:
            protocol.__init__(self, me, setup, out)
            self.voters: tuple[int, ...] = tuple([place_of(i) for i in range(len(self.voters))])

    return Placed


def with_clients(model: Model, state: State, clients: Collection[int]) -> State:
    """The state with no requests left for all other nodes."""
    others = [me for me in range(model.n) if me not in clients]
    changed = list(state)
    for me in others:
        changed[model.n + me] = model.status(me, 0, 0, "idle", NIL)
    return tuple(changed)


class SomeAsk(Model):
    """A model in which only the clients make requests. The other nodes forward messages or host replicas."""

    def __init__(self, case: Case, protocol: type[Mutex], clients: Collection[int]) -> None:
        self.clients = clients
        super().__init__(case, protocol)

    def first(self) -> State:
        return with_clients(self, super().first(), self.clients)


class Placement(Lives):
    def __init__(self, case: Case, protocol: type[Strawman], clients: int, merged: bool = False) -> None:
        self.clients = clients
        self.forgetful = range(case.nodes - 1 if merged else 0, case.nodes)
        super().__init__(case, placed(protocol))
        self.quotient = Quotient(self) if merged else None

    def first(self) -> State:
        return self.merged(with_clients(self, super().first(), range(self.clients)))

    def successors(self, state: State) -> list[Successor]:
        """Leaves out resets of nodes that must keep their memory, and lives other than the resets so far.

        Without leases it leaves out ticks as well.
        """
        return [
            (action, self.merged(after), broken)
            for action, after, broken in super().successors(state)
            if (action[0] != "tick" or self.case.options["lease"])
            and (action[0] != "reset" or action[1] in self.forgetful)
            and all(choice == self.life(state, action[1]) for choice in action[3])
        ]

    def life(self, state: State, me: int) -> int:
        budgets = self.things[state[self.at_budgets]]
        return self.case.resets - budgets[RESETS] if me in self.forgetful else 0

    def merged(self, state: State) -> State:
        return self.quotient.of(state) if self.quotient else state


def placement(
    protocol: type[Strawman] = Sigma,
    nodes: int = 3,
    clients: int = 2,
    replicas: int = 3,
    quorum: int = 2,
    merged: bool = False,
    options: dict[str, Any] | None = None,
    **bounds: Any,
) -> Placement:
    """`merged`: merge equivalent states (sigma_quotient.py) and reset only the last node, which is not a client."""
    lives = bounds.get("resets", 0) + 1
    untimed = {"lease": 0, "retry": 0, "resend": 0, "prime": False, "lives": lives}
    case = Case(
        protocol.about.name,
        nodes=nodes,
        ticks=bounds.pop("ticks", 1),
        options={**untimed, "replicas": replicas, "quorum": quorum, **(options or {})},
        **bounds,
    )
    return Placement(case, protocol, clients, merged)


def explored(protocol: type[Strawman] = Sigma, most_states: int | None = None, **bounds: Any) -> CheckReport:
    model = placement(protocol, **bounds)
    return Explorer(model.case, model).run(most_states=most_states)
