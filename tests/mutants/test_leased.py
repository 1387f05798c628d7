"""Mutants of the lock service with leases: each has one line wrong, and must break one of the named properties.

Most of them are caught over a reliable channel, where messages are only delayed.
"""

import pytest

from fairgate.walks.stacks import over_channel, plain
from tests.mutants.lossy import caught_lossy
from tests.mutants.mutate import mutant

GIVEN_AWAY = {"k", "slot", "fence"}  # two are in one slot, or one enters with a permit that has expired

OVER_A_CHANNEL = {
    "confirms any fence": (
        "        if self.is_current(m.slot, m.fence):\n            self.set",
        "        if True:\n            self.set",
        GIVEN_AWAY,
    ),
    "counts the lease from the answer": (
        "        left: int = self.until - self.now\n",
        "        left: int = self.lease\n",
        GIVEN_AWAY,
    ),
    "enters on the offer": (
        "        else:\n            self.renew()\n",
        "        else:\n            self.renew()\n            self.enter_cs(m.slot, m.fence)\n",
        GIVEN_AWAY,
    ),
    "allows for no drift": ("self.lease + (self.lease // MILLION + 1) * self.drift", "self.lease", GIVEN_AWAY),
    "stays inside when the lease expires": (
        '            self.forget_slot()\n            self.lose_cs("lease over")\n',
        "            pass\n",
        GIVEN_AWAY,
    ),
    "confirms a renewal without extending its timer": (
        '            self.set_timer(f"{SLOT}{m.slot}", self.hold_time)\n',
        "            pass\n",
        GIVEN_AWAY,
    ),
    "frees a slot on an old fence": (
        "        if self.is_current(slot, fence):\n            self.cancel",
        "        if 0 <= slot < len(self.fences):\n            self.cancel",
        GIVEN_AWAY,
    ),
    "fences do not rise": ("        self.last_fence += 1\n", "", {"fence", "liveness"}),
    "does not ask again": (
        '            self.out.note("an offer ran out on its way")\n            self.request_cs()\n',
        "            pass\n",
        {"liveness"},
    ),
    "serves nobody when a slot becomes free": (
        "        self.fences[slot] = NIL\n        self.serve()\n",
        "        self.fences[slot] = NIL\n",
        {"liveness"},
    ),
}


@pytest.mark.parametrize("name", OVER_A_CHANNEL)
def test_mutant_is_caught_over_a_channel(name: str) -> None:
    old, new, expected = OVER_A_CHANNEL[name]
    assert caught_lossy(over_channel(mutant("protocols.leased", old, new).Leased)) in expected


def test_mutant_that_takes_any_answer_for_the_last_is_caught_by_duplicates() -> None:
    mutated = mutant("protocols.leased", " or m.n != self.n:", ":")
    assert caught_lossy(plain(mutated.Leased), live=False) in GIVEN_AWAY


def test_mutant_that_sets_no_limit_to_an_offer_is_caught_by_a_crash() -> None:
    limit = '            self.set_timer(f"{SLOT}{slot}", self.hold_time)\n'
    mutated = mutant("protocols.leased", limit, "            pass\n")
    assert caught_lossy(over_channel(mutated.Leased), crash=True) == "liveness"
