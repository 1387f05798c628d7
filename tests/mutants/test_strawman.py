"""Mutants of the strawman: each has one rule wrong, and must break one of the named properties."""

import pytest

from tests.mutants.dht import DOUBLED, LEASED, REORDER, SILENT, first_broken
from tests.mutants.mutate import mutant

MUTANTS = {
    "votes of an earlier round count": (
        "if m.ts != self.ts or m.life != self.life:",
        "if self.ts == NIL or m.life != self.life:",
        REORDER,
        {"k", "hang"},
    ),
    "votes for finished rounds are not returned": (
        "            if m.grant and not self.is_released(m):\n                self.refuse(m)\n",
        "",
        DOUBLED,
        {"hang"},
    ),
    "a release of an earlier round frees the vote": (" and m.ts >= rep.Towner:", ":", REORDER, {"k"}),
    "a replica votes for every client": (
        "        if rep.Cowner == NIL:\n            self.vote",
        "        if rep:\n            self.vote",
        REORDER,
        {"k"},
    ),
    "the lease is counted from the answer": (
        "self.started + m.age + m.late + self.lease",
        "self.now + self.lease",
        LEASED,
        {"k"},
    ),
    "a client stays inside when its leases expire": (
        '            self.lose("lease over")\n',
        "            pass\n",
        SILENT,
        {"k"},
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_caught(name: str) -> None:
    old, new, spec, expected = MUTANTS[name]
    assert first_broken(mutant("protocols.sigma.strawman", old, new).Strawman, spec, 150)[0] in expected
