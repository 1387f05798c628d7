"""The model of a gate whose identities have backups (recovery/homes.py), on a ring whose peers learn of crashes.

Every node runs above a channel, homes and the watched ring. A crash is told to each living node in a step of its own,
in any order. Tokens are not counted: until a message is acknowledged, its sender and its receiver both have it.

The channel resends only when the network is quiet: a clock advances only if no message is in flight and every crash is
known. So a run can always go on, as far as the clocks reach, and the number of states stays small. What happens if
the channel resends too early is checked for the channel itself.
"""

from fairgate.check.case import Case
from fairgate.check.model import Model, State, Successor
from fairgate.check.steps import Steps
from fairgate.core.mutex import Mutex
from fairgate.errors import BadInput
from fairgate.registry import with_layers

STACK = ("channel", "homes", "watched")


class HomesModel(Model):
    starts_quiet = True  # the first copies have arrived

    def __init__(self, case: Case, protocol: type[Mutex] | None = None) -> None:
        refuse(case)
        super().__init__(case, protocol)

    def make_steps(self, protocol: type[Mutex]) -> Steps:
        self.setup.options["backups"] = self.case.backups
        self.setup.options.setdefault("channel_resend", self.case.tick)
        return Steps(with_layers(protocol, STACK), self.setup, self.table, conserving=False)

    def tick(self, found: list[Successor], state: State) -> None:
        if len(state) == self.at_flight and not self.untold(state):
            super().tick(found, state)

    def untold(self, state: State) -> list[tuple[int, int]]:
        """Pairs of a living node and a dead one of whose crash it has not been told."""
        _, told = self.things[state[self.at_history]]
        up = self.up(state)
        return [(me, peer) for peer in range(self.n) if peer not in up for me in up if (me, peer) not in told]

    def successors(self, state: State) -> list[Successor]:
        found = super().successors(state)
        if found and found[0][0][0] == "timer":
            return found  # timers that are due fire before anything else can happen
        fences, told = self.things[state[self.at_history]]
        for me, peer in self.untold(state):
            knowing = list(state)
            knowing[self.at_history] = self.table.number("history", (fences, tuple(sorted([*told, (me, peer)]))))
            self.after(found, knowing, me, self.steps.call(state[me], "dead", (peer,)), ("dead", me, peer))
        return found


def refuse(case: Case) -> None:
    if case.resets or case.census:
        raise BadInput("backups cannot be combined with resets or census")
    if not 0 <= (case.backups or 0) < case.nodes:
        raise BadInput(f"backups must be 0..{case.nodes - 1} (below the number of nodes), not {case.backups}")
    if case.crashes and case.ticks < 1:
        raise BadInput("a message that a crash loses is resent: set how far the clocks advance, for example ticks=4")
