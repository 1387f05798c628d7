"""Sigma with zones in the checker: two nodes, of which node 1 owns 68 % of the circle, where two thirds win.

Each is a member and a client. The search begins when both zones are old enough to vote with, after a first request of
node 0; then each has one more. Node 1 may lose its memory, which is the same to it as joining: it knows nothing.
"""

from __future__ import annotations

from fairgate.check.case import Case
from fairgate.check.explore import CheckReport, Explorer
from fairgate.check.model import State, Successor
from fairgate.core.ids import NIL
from fairgate.core.numbers import COMPILED
from fairgate.core.units import SECOND
from fairgate.protocols.sigma.zones import SigmaZones, SigmaZonesLiteral
from tests.support.dht_check import RESETS
from tests.support.sigma_quotient import Lives

OPTIONS = {"lease": SECOND, "drift": 500_000, "retry": 0, "resend": 0, "prime": False}
CALM = ("timer", "message", "release", "tick")  # what happens before the search begins, in this order of preference
MOST_STEPS = 60
STATES = 4_000 if not COMPILED else 40_000  # how much is explored of a case that is too large for a test


class AfterAnEntry(Lives):
    """A model whose first state is the one after an entry of node 0, with as many ticks left as the case has."""

    def __init__(self, case: Case, protocol: type[SigmaZones]) -> None:
        self.begun = False
        super().__init__(case, protocol)

    def first(self) -> State:
        state = super().first()
        state = next(after for action, after, _ in self.successors(state) if action[:2] == ("acquire", 0))
        for _ in range(MOST_STEPS):
            calm = [each for each in self.successors(state) if each[0][0] in CALM]
            if {action[0] for action, _, _ in calm} <= {"tick"} and not self.waits(state):
                break
            state = min(calm, key=lambda each: CALM.index(each[0][0]))[1]
        self.begun = True
        return self.with_one_request_each(state)

    def waits(self, state: State) -> bool:
        return bool(self.things[state[self.n]][3] != "idle")

    def with_one_request_each(self, state: State) -> State:
        changed = list(state)
        changed[self.at_clock] = self.table.number("clock", (0,) * self.n)
        changed[self.n + 1] = self.status(1, 1, 0, "idle", NIL)
        return tuple(changed)

    def successors(self, state: State) -> list[Successor]:
        return [
            each
            for each in super().successors(state)
            if (each[0][0] != "reset" or (self.begun and each[0][1] == 1))
            and all(choice == self.life(state, 0) for choice in each[0][3])
        ]

    def life(self, state: State, me: int) -> int:
        """A node that forgets draws another life than before."""
        return self.case.resets - int(self.things[state[self.at_budgets]][RESETS])


def explored(protocol: type[SigmaZones], resets: int = 1, most_states: int | None = None) -> CheckReport:
    options = {**OPTIONS, "lives": resets + 1}
    case = Case(protocol.about.name, nodes=2, requests=2, ticks=2, resets=resets, options=options)
    return Explorer(case, AfterAnEntry(case, protocol)).run(most_states=most_states)


def broken(report: CheckReport) -> list[str]:
    return [violation.what.split(":")[0] for violation in report.violations]


def test_a_member_that_votes_at_once_lets_two_in() -> None:
    """Node 0 is inside with the vote of node 1, which forgets it, asks for itself, and has two thirds."""
    report = explored(SigmaZonesLiteral)
    assert broken(report) == ["k"]
    assert [action[:2] for action in report.violations[0].path] == [
        ("acquire", 0),
        ("message", 1),
        ("message", 0),
        ("reset", 1),
        ("acquire", 1),
    ]


def test_a_member_that_waits_out_the_leases_lets_nobody_in_too_early() -> None:
    assert not explored(SigmaZones, most_states=STATES).violations
