"""Mutants of Pastry: each has one line wrong, so that rings do not come to rest or routes end at the wrong node."""

from typing import Any

import pytest

from fairgate.overlay import pastry_table
from fairgate.overlay.pastry import Pastry
from fairgate.overlay.ring import Ring
from tests.mutants.mutate import mutant
from tests.support.rings import caught, pastry_owner, routes_wrong

OPTIONS = {"pastry_leaves": 4, "pastry_cells": 8}
UPKEEP = {
    "never looks up cells": (
        "            self.later(Lookup(self.table.goal(row, column), self.me, True, 0))\n",
        "            pass\n",
    ),
    "keeps departed peers": ("        table.forget(peer)\n", "        pass\n"),
    "never asks peers that others name": (
        "            if peer not in self.awaited and self.table.wants(peer):\n",
        "            if False:\n",
    ),
    "never asks its leaves": ("        for peer in self.table.leaves():\n", "        for peer in ():\n"),
    "learns no peers": (
        "    def heard(self, src: int) -> None:\n        self.table.learn(src)\n",
        "    def heard(self, src: int) -> None:\n",
    ),
    "is never ready": ("if self.table.after:  # else", "if False:  # else"),
}
RULE = {
    "takes the farther of two neighbours": (
        "return leaf if is_closer(key, place, place_of(before)) else before",
        "return before if is_closer(key, place, place_of(before)) else leaf",
    ),
    "takes the farther of two neighbours, at rest": (
        "if is_closer(key, ring.place(rank), ring.place(rank - 1)):",
        "if not is_closer(key, ring.place(rank), ring.place(rank - 1)):",
    ),
    "takes the wrong column": (
        "cell = self.cell(row, digit(key, row, self.bits))",
        "cell = self.cell(row, 15 - digit(key, row, self.bits))",
    ),
    "gives up if a cell is empty": ("return cell if cell != NIL else self.rare_case(key, row)", "return cell"),
    "takes any node of the cell": ("below = 64 - self.bits * (row + 1)", "below = 64"),
}


@pytest.mark.parametrize("name", UPKEEP)
def test_mutant_of_the_upkeep_is_caught(name: str) -> None:
    module = mutant("overlay.pastry", *UPKEEP[name])
    assert caught(module.Pastry, pastry_owner, OPTIONS)


@pytest.mark.parametrize("name", RULE)
def test_mutant_of_the_rule_is_caught(name: str) -> None:
    assert breaches(mutant("overlay.pastry_table", *RULE[name]))


def test_the_original_passes() -> None:
    assert caught(Pastry, pastry_owner, OPTIONS) == ""
    assert breaches(pastry_table) == ""


def breaches(module: Any) -> str:
    """What is wrong with the routes of settled tables, or else of kept tables, which walk along their leaves."""

    def kept(me: int, ring: Ring) -> Any:
        table = module.KeptPastryTable(me, 4, 4)
        table.begin(ring)
        return table

    settled = routes_wrong(lambda me, ring: module.SettledPastryTable(me, 4, 4, ring), pastry_owner)
    return settled or routes_wrong(kept, pastry_owner)
