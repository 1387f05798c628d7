"""Mutants of whole clusters: each breaks one rule of rosters, leases, gates or the census. Walks must catch it.

The walks are those of walks/clusters.py; each mutant names the seed of one that finds it.
"""

from __future__ import annotations

from unittest.mock import patch

import msgspec
import pytest

from fairgate.core.ids import NIL
from fairgate.core.message import Key, Message
from fairgate.core.numbers import COMPILED
from fairgate.live.gate import LiveGate
from fairgate.live.gate_checks import EarlyMessages
from fairgate.live.ticket import Ticket
from fairgate.recovery.census import Answer, Install
from fairgate.recovery.regenerate import Regenerate
from fairgate.recovery.roster import RosterBook, as_key, members_of
from fairgate.scenario.manual import Violation
from fairgate.walks.cluster_peer import Parts, SimulatedPeer
from fairgate.walks.clusters import cluster_walks
from tests.mutants.mutate import mutant
from tests.mutants.rosters import mutated


class IgnoresGhosts(Regenerate):
    def on_view(self, number: int, members: tuple[int, ...], ghosts: tuple[int, ...]) -> None:
        Regenerate.on_view(self, number, members, ())


class TrustsEveryTrail(Regenerate):
    """Takes every slot for certain, whatever the survivors know of its token."""

    def certain(self, answers: dict[int, Answer]) -> set[int]:
        return set(range(self.setup.k))


class ForgetsWhoIsInside(Regenerate):
    def tell(self, member: int, msg: object) -> None:
        if isinstance(msg, Answer) and msg.inside:
            msg = Answer(msg.view, NIL, False, NIL, NIL, 0, msg.seen, msg.epoch, msg.sure, msg.trail)
        Regenerate.tell(self, member, msg)  # type: ignore[arg-type]


class DoesNotCatchUp(Regenerate):
    def catch_up(self, m: Install) -> None:
        if m.granted and self.request == m.request:
            self.let_in(m.slot, m.fence)


class KeepsPermits(LiveGate):
    def lose_all(self, why: str) -> bool:
        return False


class FreesSlotsAtOnce(LiveGate):
    """When users are told to stop, not when they have had the time to do so."""

    def lose_all(self, why: str) -> bool:
        LiveGate.lose_all(self, why)
        self.lease_ended()
        return False


class FreesSlotsWhenItCloses(LiveGate):
    """Likewise, if the peer leaves meanwhile."""

    def close(self, why: str) -> None:
        self.lease_ended()
        LiveGate.close(self, why)


class NeedsNoLease(LiveGate):
    def granted(self, ident: int, request: int, slot: int, fence: int) -> None:
        ticket = self.tickets.get(ident)
        if ticket is not None and ticket.number == request:
            ticket.slot, ticket.fence = slot, fence
            self.let_in(ticket)


class ForgetsWithheldGrants(LiveGate):
    def let_in_withheld(self) -> None:
        self.withheld = []


class IsAlwaysBusy(LiveGate):
    def has_census_under_way(self) -> bool:
        return self.record.warden() == self.uplink.me


class AsksNoMore(LiveGate):
    """Requests that wait when their peer is excluded are not made again."""

    def ask_again(self, ticket: Ticket) -> None: ...


class ForgetsEarlyMessages(LiveGate):
    def deliver_early(self) -> None:
        self.early = EarlyMessages()


class RestsWhileItIsUsed(LiveGate):
    def is_idle(self) -> bool:
        return not (self.resting or self.closed or self.unseated)


class UsesSeatsThatAreGivenUp(LiveGate):
    def acquire(self, ticket: Ticket) -> None:
        resting, self.resting = self.resting, False
        LiveGate.acquire(self, ticket)
        self.resting = resting


class TakesMessagesOfSeatsGivenUp(LiveGate):
    def on_message(self, dst: int, src: int, msg: Message) -> None:
        unseated, self.unseated = self.unseated, set()
        LiveGate.on_message(self, dst, src, msg)
        self.unseated |= unseated - self.idents


class ForgetsEpochs(RosterBook):
    """With the last gate."""

    def changed(self, content: Key, change: Key, peer: int) -> Key:
        after = members_of(RosterBook.changed(self, content, change, peer))
        return as_key(after if after.gates else msgspec.structs.replace(after, epoch=0))


class ForgetsGhosts(RosterBook):
    def excluded(self, content: Key, peer: int) -> Key:
        return self.left(content, peer)


class KeepsItsId(SimulatedPeer):
    """An excluded peer goes on as if nothing had happened."""

    def excluded(self, why: str) -> None: ...


MUTANTS = {
    "ghosts are ignored": (Parts(regenerate=IgnoresGhosts), 2, "exclusion"),
    "every slot is certain": (Parts(regenerate=TrustsEveryTrail), 2, "exclusion"),
    "the census forgets who is inside": (Parts(regenerate=ForgetsWhoIsInside), 0, "exclusion"),
    "what users did during a census is lost": (Parts(regenerate=DoesNotCatchUp), 0, "spoiled"),
    "an excluded peer leaves no ghosts": (Parts(book=ForgetsGhosts), 2, "exclusion"),
    "permits outlive a lease": (Parts(gate=KeepsPermits), 8, "lease"),
    "slots are free before their users have stopped": (Parts(gate=FreesSlotsAtOnce), 8, "exclusion"),
    "a peer that leaves waits for no user": (Parts(gate=FreesSlotsWhenItCloses), 2211, "exclusion"),
    "grants need no lease": (Parts(gate=NeedsNoLease), 0, "lease"),
    "withheld grants are forgotten": (Parts(gate=ForgetsWithheldGrants), 80, "slots"),
    "a census is never over": (Parts(gate=IsAlwaysBusy), 0, "slots"),
    "waiting requests of an excluded peer are lost": (Parts(gate=AsksNoMore), 0, "liveness"),
    "messages for a later view are lost": (Parts(gate=ForgetsEarlyMessages), 10, "liveness"),
    "a gate rests while it is used": (Parts(gate=RestsWhileItIsUsed), 0, "exclusion"),
    "seats that are given up are used": (Parts(gate=UsesSeatsThatAreGivenUp), 4, "exclusion"),
    "a gate that comes back starts with old epochs": (Parts(book=ForgetsEpochs), 22, "fences"),
}


def broken(parts: Parts, seed: int) -> str:
    """The promise that the walk with this seed, or one of the next few, finds broken; "" if there is none."""
    try:
        cluster_walks(range(seed, seed + 10), parts)
    except Violation as found:
        return str(found).partition(":")[0]
    return ""


@pytest.mark.parametrize("rule", MUTANTS)
def test_a_mutant_is_caught(rule: str) -> None:
    parts, seed, expected = MUTANTS[rule]
    assert broken(parts, seed) == expected


def test_peers_that_wait_in_vain_when_all_leave_are_caught() -> None:
    with mutated(("ballots", "        self.tell_those_that_left(before)\n", "")) as views:
        assert broken(Parts(views=views), 0) == "leaving"


def test_forgetting_an_excluded_peer_at_once_is_caught() -> None:
    with mutated(("changes", "self.now + wait) for", "self.now) for")) as views:
        assert broken(Parts(views=views), 18) == "exclusion"


@pytest.mark.skipif(COMPILED, reason="`make test` runs it with FAIRGATE_PURE=1: compiled gates take compiled nodes")
def test_fences_that_do_not_rise_with_the_view_are_caught() -> None:
    module = mutant("recovery.regenerate", "self.view, in_order(front", "1, in_order(front")
    assert broken(Parts(regenerate=module.Regenerate), 0) == "fences"


def test_messages_for_a_seat_that_was_given_up_are_caught_if_they_reach_the_next() -> None:
    with pytest.raises(ValueError, match="only its leader can"):
        cluster_walks(range(150, 160), Parts(gate=TakesMessagesOfSeatsGivenUp))


def test_an_excluded_peer_that_keeps_its_id_is_caught() -> None:
    with patch("fairgate.walks.clusters.SimulatedPeer", KeepsItsId):
        assert broken(Parts(), 0) == "liveness"
