"""Every statement of every handler deleted in turn is noticed, or its survival is explained."""

import pytest

from fairgate.check.deletions import count_places, delete_all, judged_at, mutant_at
from fairgate.check.judges import judge
from fairgate.check.survivors import SURVIVORS, explain
from fairgate.cli.mutants import mutants_command
from fairgate.core.kbr import Routed
from fairgate.errors import BadInput
from fairgate.protocols.leased import Leased
from fairgate.registry import PROTOCOLS

QUICK = ["naimi_trehel", "centralised"]
LONG = [
    "fair_k",
    "fair_k_bounded",
    "bv95",
    "raymond",
    "raymond_fd",
    "ricart_agrawala",
    "suzuki_kasami",
    "maekawa",
    "leased",
]
ALL = [*QUICK, *[pytest.param(name, marks=pytest.mark.stress) for name in LONG]]


def test_no_protocol_is_left_out() -> None:
    """But those on a DHT, whose judges are still to come."""
    whole = {name for name, protocol in PROTOCOLS.items() if not issubclass(protocol, Routed)}
    assert {*QUICK, *LONG} == {name for name in whole if not name.endswith("_literal")}


def test_a_protocol_without_judges_is_refused() -> None:
    with pytest.raises(BadInput, match="on a DHT"):
        mutants_command(PROTOCOLS["sigma"], as_json=True)


@pytest.mark.parametrize("name", ALL)
def test_every_deletion_is_noticed_or_explained(name: str) -> None:
    found = list(delete_all(PROTOCOLS[name]))
    survivors = [deleted for deleted in found if not deleted.caught]
    assert [deleted for deleted in survivors if not explain(deleted)] == []
    assert {(deleted.handler, deleted.statement) for deleted in survivors} == set(SURVIVORS.get(name, {}))


@pytest.mark.parametrize(
    "name", [QUICK[0], *[pytest.param(name, marks=pytest.mark.stress) for name in [*QUICK[1:], *LONG]]]
)
def test_the_original_is_found_guilty_of_nothing(name: str) -> None:
    assert judge(PROTOCOLS[name]) == ""


def test_a_loop_without_an_end_is_noticed() -> None:
    numbers = {mutant_at(Leased, number)[0].statement: number for number in range(count_places(Leased))}
    deleted = judged_at(Leased, numbers["self.offer(self.fences.index(NIL), self.queue.pop(0))"])
    assert (deleted.handler, deleted.caught) == ("serve", "RuntimeError")


def test_several_processes_find_the_same() -> None:
    alone, together = (set(delete_all(PROTOCOLS["centralised"], workers)) for workers in (1, 2))
    assert alone == together
