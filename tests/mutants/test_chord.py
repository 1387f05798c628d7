"""Mutants of Chord: each has one line wrong, so that rings do not come to rest or routes end at the wrong node."""

import pytest

from fairgate.overlay.chord import Chord
from fairgate.overlay.chord_table import SettledChordTable
from tests.mutants.mutate import mutant
from tests.support.rings import caught, chord_owner, rests_after_isolation, rests_after_suspicion, routes_wrong

OPTIONS = {"chord_successors": 3}
UPKEEP = {
    "tells its successor nothing": (
        "        else:\n            self.out.send(src, Notify(self.table.predecessor))\n",
        "",
    ),
    "never accepts a nearer predecessor": (
        "elif old == NIL or clockwise(place_of(src), self.place) < clockwise(place_of(old), self.place):",
        "elif old == NIL:",
    ),
    "never asks a node between itself and its successor": (
        "if is_nearer and between not in self.suspected:",
        "if False:",
    ),
    "never takes over its successor's list": (
        "        self.take_list(src, m.successors)\n        between",
        "        self.take_list(src, ())\n        between",
    ),
    "never looks up fingers": (
        "            self.later(Lookup(past(self.place, self.next_finger), self.me, True, 0))\n",
        "",
    ),
    "keeps a dead predecessor": ("        if table.predecessor == peer:\n", "        if False:\n"),
    "keeps dead successors": ("            table.successors.remove(peer)\n", "            pass\n"),
}
RULE = {
    "takes the successor after the owner": (
        "place_of(self.successor(i))) < away:",
        "place_of(self.successor(i))) <= away:",
    ),
    "owns its predecessor's place": ("if is_between(key, self.start(), self.place):", "if key == self.place:"),
    "never sees the owner among its successors": ("if away <= reach:", "if False:"),
}


@pytest.mark.parametrize("name", UPKEEP)
def test_mutant_of_the_upkeep_is_caught(name: str) -> None:
    module = mutant("overlay.chord", *UPKEEP[name])
    assert caught(module.Chord, chord_owner, OPTIONS)


def test_a_node_that_suspects_forever_is_caught() -> None:
    module = mutant("overlay.chord", "        self.ask_suspects(m.successors)\n", "")
    assert not rests_after_suspicion(module.Chord, OPTIONS)


def test_a_node_that_accepts_to_be_alone_is_caught() -> None:
    module = mutant("overlay.chord", "for peer in sorted(self.suspected):", "for peer in ():")
    assert not rests_after_isolation(module.Chord, OPTIONS)


@pytest.mark.parametrize("name", RULE)
def test_mutant_of_the_rule_is_caught(name: str) -> None:
    module = mutant("overlay.chord_table", *RULE[name])
    assert routes_wrong(lambda me, ring: module.SettledChordTable(me, 8, 64, ring), chord_owner)


def test_the_original_passes() -> None:
    assert caught(Chord, chord_owner, OPTIONS) == ""
    assert routes_wrong(lambda me, ring: SettledChordTable(me, 8, 64, ring), chord_owner) == ""
