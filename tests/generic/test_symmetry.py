"""Protocols that claim symmetry allow peers to be renamed: tested for every step of many states, under every renaming.

The checker must also give the same verdict, at the same depth, with symmetry as without.
"""

from __future__ import annotations

from typing import Any

import pytest

from fairgate.check.case import Case
from fairgate.check.explore import Explorer, explore
from fairgate.check.model import Model, State
from fairgate.check.symmetry import Ids, Names, renamed, renamings
from fairgate.core.numbers import COMPILED
from fairgate.errors import BadInput
from fairgate.protocols.fair_k import FairK
from fairgate.registry import PROTOCOLS
from tests.mutants.mutate import mutant, speak
from tests.mutants.test_fair_cycles import CHATTER, HANDLER

SYMMETRIC = [name for name, protocol in PROTOCOLS.items() if protocol.about.ids]
MOST_STATES = 1_500
CIRCUMSTANCES: tuple[dict[str, Any], ...] = (
    {"nodes": 4},
    {"requests": 2, "cancels": 1},
    {"requests": 2, "network": "fifo"},
    {"nodes": 4, "k": 2},
    {"network": "lossy"},
    {"crashes": 1},
)


def states_of(model: Model) -> list[State]:
    """The reachable states, breadth first, up to a limit."""
    found = [model.first()]
    seen = set(found)
    for state in found:  # the list grows during the loop
        for _, after, _ in model.successors(state):
            if after not in seen and len(found) < MOST_STATES:
                seen.add(after)
                found.append(after)
    return found


def renamings_of(model: Model, ids: Ids) -> list[Names]:
    first = [(model.table.kinds[number], model.things[number]) for number in {*model.fresh, *model.first()}]
    return renamings(model.n, model.setup.root, first, ids)


def renamed_state(model: Model, state: State, names: Names, ids: Ids) -> State:
    table = model.table
    other = [table.number(table.kinds[x], renamed(table.kinds[x], model.things[x], names, ids)) for x in state]
    places = [names.index(me) for me in range(model.n)]
    keys, statuses = [other[me] for me in places], [other[model.n + me] for me in places]
    flight = sorted(other[model.at_flight :], key=model.order)
    return (*keys, *statuses, *other[model.at_budgets : model.at_flight], *flight)


def differences(model: Model, ids: Ids) -> int:
    """For how many states and renamings the renamed successors are not the successors of the renamed state."""
    found = 0
    for state in states_of(model):
        after = [successor for _, successor, _ in model.successors(state)]
        for names in renamings_of(model, ids):
            ours = {model.fingerprint(renamed_state(model, successor, names, ids)) for successor in after}
            other = renamed_state(model, state, names, ids)
            found += ours != {model.fingerprint(successor) for _, successor, _ in model.successors(other)}
    return found


def cases(name: str) -> list[Case]:
    many = PROTOCOLS[name].about.many
    options = {"reentry": 0} if "reentry" in PROTOCOLS[name].about.options else {}
    return [Case(name, **each, options=options) for each in CIRCUMSTANCES if many or each.get("k", 1) == 1]


def test_some_protocols_are_symmetric() -> None:
    assert set(SYMMETRIC) == {"fair_k", "fair_k_bounded", "naimi_trehel", "centralised"}


@pytest.mark.parametrize("name", SYMMETRIC)
def test_a_renamed_state_has_the_renamed_successors(name: str) -> None:
    ids = PROTOCOLS[name].about.ids
    tried = 0
    for case in cases(name):
        model = Model(case)
        tried += len(renamings_of(model, ids))
        assert differences(model, ids) == 0, case
    assert tried > 0


def test_a_protocol_that_compares_ids_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    line = "        self.parent = m.r  # FK:PR4"
    module = mutant("protocols.fair_k", line, "        self.parent = max(self.me, m.r)")
    speak(module, monkeypatch)
    model = Model(Case("fair_k"), module.FairK)
    assert differences(model, FairK.about.ids) > 0


@pytest.mark.parametrize("forgotten", [("key", 5), ("key", 6), ("fk.request", 1), ("fk.token_locations", 1)])
def test_a_missing_position_of_an_id_is_detected(forgotten: tuple[str, int]) -> None:
    kind, place = forgotten
    ids = FairK.about.ids
    poorer = {**ids, kind: tuple(each for each in ids[kind] if each != place)}
    assert differences(Model(Case("fair_k")), poorer) > 0


# The checker with symmetry: (case, states without symmetry, states with it).

COUNTS = (
    (Case("fair_k", requests=2), 10_806, 5_414),
    (Case("fair_k", nodes=4), 34_298, 5_798),
    (Case("fair_k", nodes=4, k=2), 10_552, 5_289),
    (Case("fair_k", k=2, requests=2, network="fifo"), 1_542, 1_542),  # only one node is neither root nor holder
    (Case("naimi_trehel", nodes=4), 1_476, 269),
    (Case("centralised", requests=2), 869, 447),
    (Case("centralised", nodes=4, k=2), 2_104, 426),
)


@pytest.mark.parametrize(("case", "without", "with_it"), COUNTS)
def test_symmetry_gives_fewer_states_and_the_same_verdict(case: Case, without: int, with_it: int) -> None:
    plain, fewer = explore(case), Explorer(case, Model(case, symmetry=True)).run()
    assert (plain.states, fewer.states) == (without, with_it)
    for report in (plain, fewer):
        assert (report.complete, report.violations, report.cyclic) == (True, (), 0)
    assert plain.depth == fewer.depth


LARGE = (
    (Case("fair_k", nodes=4, requests=2), 177_429),  # of 1,059,739
    (Case("fair_k", nodes=5, k=2), 100_399),  # of 599,982
)


@pytest.mark.stress
@pytest.mark.skipif(not COMPILED, reason="too long for plain Python")
@pytest.mark.parametrize(("case", "states"), LARGE)
def test_symmetry_in_larger_cases(case: Case, states: int) -> None:
    report = Explorer(case, Model(case, symmetry=True)).run()
    assert (report.complete, report.violations, report.states) == (True, (), states)


BROKEN = (
    Case("fair_k", network="dup"),
    Case("fair_k", nodes=4, network="lossy"),
    Case("fair_k", nodes=4, k=2, crashes=1),
    Case("fair_k", resets=1),
    Case("naimi_trehel", network="lossy"),
    Case("centralised", network="dup", requests=2),
)


VARIANTS = ((False, 1), (True, 1), (True, 2))  # symmetry, workers


@pytest.mark.parametrize("case", BROKEN)
def test_a_violation_is_found_at_the_same_depth(case: Case) -> None:
    explorers = (Explorer(case, Model(case, symmetry=symmetry), workers) for symmetry, workers in VARIANTS)
    plain, fewer, together = [violation for explorer in explorers for violation in explorer.run().violations]
    assert plain.what.split(":")[0] == fewer.what.split(":")[0]
    assert len(plain.path) == len(fewer.path)
    assert fewer.what == together.what
    assert [what for what, *_ in fewer.path] == [what for what, *_ in together.path]


def test_fair_cycles_cannot_be_checked_with_symmetry(monkeypatch: pytest.MonkeyPatch) -> None:
    module = mutant("protocols.centralised", HANDLER, CHATTER)
    speak(module, monkeypatch)
    case = Case("centralised")
    with pytest.raises(BadInput, match="symmetry cannot check liveness"):
        Explorer(case, Model(case, module.Centralised, symmetry=True)).run()
