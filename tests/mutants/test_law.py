"""A node that forgets a field, or shares one, breaks the law, and the law's test says how."""

import pytest

from fairgate.core.layers import over
from fairgate.protocols.leased import Leased
from fairgate.walks.stacks import Stack, plain
from tests.mutants.mutate import mutant
from tests.support.law import Lawless, law_walks

FAIR_K_KEY = """        return (
            self.version,
            self.request,
            self.requesting_cs,
            self.inside,
            self.parent,
            self.next,
            """

MUTANTS = {
    "the key leaves child out": ("fair_k", "FairK", FAIR_K_KEY + "self.child,", FAIR_K_KEY + "NIL,", "effects"),
    "load keeps the journal's list": (
        "fair_k",
        "FairK",
        "self.token_locations = tuple(locations)",
        "self.token_locations = locations",
        "clone: loaded from JSON",
    ),
    "the key has a list in it": (
        "leased",
        "Leased",
        "tuple(self.queue),\n            tuple",
        "self.queue,\n            tuple",
        "state",
    ),
    "timers are not armed again": (
        "leased",
        "Leased",
        "        self.load_timers(tuple(timers))\n",
        "",
        "clone: loaded",
    ),
    "the key tells the time": (
        "leased",
        "Leased",
        "self.until - self.now if self.renewing else 0",
        "self.until",
        "clone: loaded",
    ),
    "the key forgets how many were asked": (
        "leased",
        "Leased",
        "            self.n,\n            self.until",
        "            0,\n            self.until",
        "effects",
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_breaks_the_law(name: str) -> None:
    module, cls, old, new, law = MUTANTS[name]
    with pytest.raises(Lawless, match=f"^{law}"):
        law_walks(plain(getattr(mutant(f"protocols.{module}", old, new), cls)), range(20))


def test_channel_that_forgets_its_delay_breaks_the_law() -> None:
    module = mutant(
        "recovery.channel",
        "messages_key(self.unacknowledged), self.delay,",
        "messages_key(self.unacknowledged), RESEND,",
    )
    with pytest.raises(Lawless, match=r"^effects"):
        law_walks(Stack("mutant", over(module.Channel, Leased), Leased.about), range(20), lossy=True)
