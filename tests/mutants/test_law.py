"""Mutants whose key leaves out or shares a field: they break the law of keys, and the law's test says how.

The law: a node rebuilt from another's key continues exactly as the original would (tests/support/law.py).
"""

import pytest

from fairgate.core.layers import over
from fairgate.mutation.deletions import speaking
from fairgate.protocols.leased import Leased
from fairgate.walks.stacks import Stack, plain
from tests.mutants.mutate import mutant
from tests.support.law import Lawless, law_walks

MUTANTS = {
    "the key leaves child out": (
        "fair_k",
        "FairK",
        "    child: Id = NIL\n",
        "    from fairgate.core.declare import Fixed\n    child: Fixed[Id] = NIL\n",
        "effects",
    ),
    "load keeps a list from the journal": (
        "fair_k",
        "FairK",
        "    token_locations: Ids = ()\n",
        "    from typing import Any\n    token_locations: Any = ()\n",
        "clone: loaded from JSON",
    ),
    "the key contains a list": (
        "leased",
        "Leased",
        "    queue: list[Id] = []\n",
        "    from typing import Any\n    queue: Any = []\n",
        "state",
    ),
    "timers are not armed again": (
        "leased",
        "Leased",
        "    def until_key(self)",
        "    def load_timers(self, key: Any) -> None:\n        pass\n\n    def until_key(self)",
        "clone: loaded",
    ),
    "the key contains an absolute time": (
        "leased",
        "Leased",
        "self.until - self.now if self.renewing else 0",
        "self.until",
        "clone: loaded",
    ),
    "the key leaves out the number of the last question": (
        "leased",
        "Leased",
        "    n: int = 0\n",
        "    n: Fixed[int] = 0\n",
        "effects",
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_breaks_the_law(name: str) -> None:
    module, cls, old, new, law = MUTANTS[name]
    mutated = mutant(f"protocols.{module}", old, new)
    with speaking(mutated), pytest.raises(Lawless, match=f"^{law}"):
        law_walks(plain(getattr(mutated, cls)), range(20))


def test_channel_that_forgets_its_delay_breaks_the_law() -> None:
    forgets = (
        "    def loaded(self) -> None:\n        for link in self.links.values():\n            link.delay = RESEND\n"
    )
    before = "    def link(self, peer: int)"
    module = mutant("recovery.channel", before, f"{forgets}\n{before}")
    with speaking(module), pytest.raises(Lawless, match=r"^clone: loaded"):
        law_walks(Stack("mutant", over(module.Channel, Leased), Leased.about), range(20), lossy=True)
