"""Mutants of protocols that the checker finds in small cases, each by the property that it breaks.

Random walks find them too (the other files here); the checker also shows that no shorter run breaks the property. A
second part tests that the plain and the compiled table of states give the same answers.
"""

from __future__ import annotations

import random
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import fairgate.check.seen
from fairgate.check.case import Case
from fairgate.check.counterexample import Counterexample
from fairgate.check.explore import Explorer
from fairgate.check.model import Model
from fairgate.core.mutex import Mutex
from fairgate.mutation.deletions import speaking
from fairgate.scenario.run import run_scenario
from fairgate.trace.replay import replay
from tests.mutants.mutate import mutant

FAIR_K, NAIMI, RAYMOND, MAEKAWA = "protocols.fair_k", "protocols.naimi_trehel", "protocols.raymond", "protocols.maekawa"

MUTANTS: dict[str, tuple[str, str, str, dict[str, Any], str]] = {
    "fair_k: stays the coordinator (AS3)": (FAIR_K, "        self.is_coordinator = False\n", "", {}, "coordinator"),
    "fair_k: keeps its parent when it asks (RQ2)": (
        FAIR_K,
        "            self.parent = NIL  # FK:RQ2",
        "            pass",
        {},
        "liveness",
    ),
    "fair_k: does not pass an idle token on (PC2)": (
        FAIR_K,
        "            self.send_token(m.r)  # FK:PC2",
        "            pass",
        {"k": 2},
        "liveness",
    ),
    "fair_k: the fence does not rise": (FAIR_K, "        self.fence += 1\n", "", {}, "fence"),
    "fair_k: grants each request twice": (
        FAIR_K,
        "        self.enter_cs(self.slot, self.fence)\n",
        "        self.enter_cs(self.slot, self.fence)\n        self.out.granted(self.request, self.slot, self.fence)\n",
        {},
        "grant",
    ),
    "naimi_trehel: is granted its request again when another node asks": (
        NAIMI,
        "            self.next = m.r  # NT:PR2\n",
        "            self.next = m.r\n            self.out.granted(self.request, SLOT, self.fence)\n",
        {},
        "grant",
    ),
    "naimi_trehel: forgets to clear next": (
        NAIMI,
        "            self.next = NIL  # NT:RL2\n",
        "",
        {"requests": 2},
        "assertion",
    ),
    "naimi_trehel: a waiting root sends a token that it does not have": (
        NAIMI,
        "        elif self.requesting_cs:",
        "        elif False:",
        {},
        "k",
    ),
    "naimi_trehel: an idle root keeps its token": (
        NAIMI,
        "            self.send_token(m.r)  # NT:PR3\n",
        "            pass\n",
        {},
        "liveness",
    ),
    "naimi_trehel: the fence starts again at 0": (NAIMI, "Token(self.fence)", "Token(0)", {}, "fence"),
    "raymond: one permission too few (15)": (
        RAYMOND,
        "self.perm_count >= self.n - self.k:",
        "self.perm_count >= self.n - self.k - 1:",
        {},
        "k",
    ),
    "raymond: one permission too many (15)": (
        RAYMOND,
        "self.perm_count >= self.n - self.k:",
        "self.perm_count > self.n - self.k:",
        {},
        "liveness",
    ),
    "raymond: replies while inside (24)": (RAYMOND, "if self.state == CS or (self.state", "if (self.state", {}, "k"),
    "raymond: both win a tie (25)": (RAYMOND, "            return self.me < j", "            return False", {}, "k"),
    "maekawa: a quorum is only a row": (
        MAEKAWA,
        "{*row, *range(place % side, len(members), side)}",
        "row",
        {},
        "k",
    ),
    "maekawa: nobody is told FAILED": (
        MAEKAWA,
        "            self.tell(src, Failed(m.ts))",
        "            pass",
        {},
        "liveness",
    ),
    "maekawa: a relinquished lock still counts": (
        MAEKAWA,
        "                self.locked.discard(arbiter)\n",
        "",
        {},
        "assertion",
    ),
    "maekawa: the arbiter never serves its queue": (
        MAEKAWA,
        "        if self.queue:\n            self.lock_best()",
        "        pass",
        {},
        "liveness",
    ),
}


CLASSES = {FAIR_K: "FairK", NAIMI: "NaimiTrehel", RAYMOND: "Raymond", MAEKAWA: "Maekawa"}


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_found_and_its_counterexample_replays(name: str, tmp_path: Path) -> None:
    path, old, new, circumstances, broken = MUTANTS[name]
    module = mutant(path, old, new)
    make = getattr(module, CLASSES[path])
    with speaking(module):
        found_and_shown(path, make, circumstances, broken, tmp_path)


def found_and_shown(path: str, make: type[Mutex], circumstances: dict[str, Any], broken: str, tmp_path: Path) -> None:
    case = Case(path.removeprefix("protocols."), **circumstances)
    explorer = Explorer(case, Model(case, make))
    (violation,) = explorer.run().violations
    assert violation.what.split(":")[0] == broken
    way = Counterexample(explorer.model, violation)
    way.write_journal(tmp_path / "way.ndjson")
    assert len(list(replay(tmp_path / "way.ndjson", make))) == len(way.reenactment.kept.steps)
    text = way.scenario()
    assert run_scenario(text, lambda *_: make) == text


@pytest.mark.parametrize("path", CLASSES)
def test_the_checker_finds_nothing_in_the_original(path: str) -> None:
    """The original is loaded from source like the mutants, so it is the changed line that makes them fail."""
    module = unchanged(path)
    case = Case(path.removeprefix("protocols."))
    with speaking(module):
        report = Explorer(case, Model(case, getattr(module, CLASSES[path]))).run()
    assert (report.complete, report.violations) == (True, ())


def unchanged(path: str) -> ModuleType:
    line = "from fairgate.core.about import About\n"
    return mutant(path, line, line)


# The table of states.


def plain_seen() -> Any:
    """The class of seen.py, even if seen.pyx is compiled."""
    source = Path(fairgate.check.seen.__file__).parent / "seen.py"
    module = ModuleType("plain_seen")
    exec(compile(source.read_text(), str(source), "exec"), module.__dict__)
    return module.Seen()


@pytest.mark.parametrize("seed", range(3))
def test_both_tables_of_states_answer_alike(seed: int) -> None:
    """Fingerprints that are small, large, negative, zero and repeated, enough of them to make the table grow."""
    chance = random.Random(seed)
    plain, other = plain_seen(), fairgate.check.seen.Seen()
    widths = (0, 4, 12, 30, 63)
    for step in range(20_000):
        if step % 7_000 == 0:
            other.rest()  # drops its table, which is rebuilt on the next query
        bits = chance.choice(widths)
        fingerprint = chance.randrange(-(1 << bits), 1 << bits)
        parent = chance.randrange(-1, plain.size() + 1)
        assert plain.add(fingerprint, parent) == other.add(fingerprint, parent)
    assert plain.size() == other.size() > 4_096
    other.rest()
    for number in range(plain.size()):
        assert plain.fingerprint(number) == other.fingerprint(number)
        assert plain.parent(number) == other.parent(number)
        assert plain.find(plain.fingerprint(number)) == other.find(plain.fingerprint(number)) == number
    unseen = [f for f in range(1 << 40, (1 << 40) + 100) if plain.find(f) < 0]
    assert unseen
    assert all(other.find(f) == -1 for f in unseen)
