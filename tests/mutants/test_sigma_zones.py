"""Mutants of Sigma with zones: without one part of the rule by which members vote, a named property must break."""

from __future__ import annotations

import pytest

from fairgate.mutation.dht_judges import registered, turn_limited
from fairgate.protocols.sigma.votes import Resp
from fairgate.protocols.sigma.zones import SigmaZones, SigmaZonesLiteral
from fairgate.swarm.run import attempt
from tests.mutants.dht import first_broken, messages
from tests.mutants.mutate import mutant as mutated
from tests.paper.test_sigma_zones import OVERLAPS, an_heir_waits
from tests.support.dht_walk import MS, SECOND, Spec

SEEDS = 40
COMING_AND_GOING = Spec(
    nodes=4,
    joins=2,
    absences=12,
    requests=4,
    think=0,
    stay=2500 * MS,
    faults_until=25 * SECOND,
    options={"replicas": 20, "quorum": 11, "lease": 4 * SECOND},
)


class WaitsTooShort(SigmaZones):
    def wait_out_leases(self) -> None:
        self.set_timer("zone", self.hold_time // 100)


class InheritsAtOnce(SigmaZones):
    """Only a member that has no zone yet waits."""

    def wait_out_leases(self) -> None:
        if self.back + self.ahead:
            self.vote_with_all()
        else:
            SigmaZones.wait_out_leases(self)


class KeepsWhatItLost(SigmaZones):
    """A member goes on voting with the part of its zone that a new member serves now."""

    def see_zone(self) -> None:
        back, ahead = self.back, self.ahead
        SigmaZones.see_zone(self)
        self.back, self.ahead = max(self.back, back), max(self.ahead, ahead)


class FindsNobody(SigmaZones):
    def close_gap(self, before: Resp, after: Resp) -> None:
        pass


class ForgetsNobody(SigmaZones):
    def forget_inside(self, r: Resp) -> None:
        pass


@pytest.mark.parametrize(
    ("mutant", "what"),
    [
        (SigmaZonesLiteral, "k"),
        (WaitsTooShort, "k"),
        (KeepsWhatItLost, "k"),
        (FindsNobody, "hang"),
        (SigmaZones, ""),
    ],
)
def test_what_breaks(mutant: type[SigmaZones], what: str) -> None:
    assert first_broken(mutant, COMING_AND_GOING, SEEDS)[0] == what


def test_an_heir_that_does_not_wait_is_noticed() -> None:
    """Random runs hardly ever break: the client with the lost member's vote usually has the heir's as well."""
    with pytest.raises(AssertionError):
        an_heir_waits(InheritsAtOnce)


def test_members_that_are_not_forgotten_cost_messages() -> None:
    assert messages(ForgetsNobody, COMING_AND_GOING, 10) > 1.05 * messages(SigmaZones, COMING_AND_GOING, 10)


def test_an_overlap_that_is_taken_for_a_gap_is_noticed() -> None:
    """The client asks itself forever while no time passes. Messages at one time are limited, so the run ends."""
    rule = (
        "        if is_between(second.start, first.start, first.end):\n"
        "            return  # they overlap: one of them has died, and its vote still counts\n"
    )
    with registered(turn_limited(mutated("protocols.sigma.zones", rule, "").SigmaZones)):
        broken, _ = attempt(OVERLAPS)
    assert broken.startswith("RuntimeError: endless loop")
