"""Deletes every statement of every handler in turn: each deletion must be noticed, or its survival be explained."""

import ast
import os
import signal
from dataclasses import replace

import pytest

from fairgate.core.kbr import Routed
from fairgate.core.message import decode
from fairgate.core.mutex import Mutex
from fairgate.mutation import deletions
from fairgate.mutation.deletions import (
    Deleted,
    count_places,
    delete_all,
    judged_at,
    load_mutant,
    mutant_at,
    own_classes,
    places,
    source_of,
    speaking,
)
from fairgate.mutation.judges import judge
from fairgate.mutation.survivors import SURVIVORS, explain
from fairgate.protocols.bv95 import Request
from fairgate.protocols.e2e.protocol import E2E
from fairgate.protocols.leased import Leased
from fairgate.registry import PROTOCOLS

QUICK = ["naimi_trehel", "centralised"]
LONG = [
    "fair_k",
    "fair_k_bounded",
    "one_line",
    "bv95",
    "raymond",
    "raymond_fd",
    "ricart_agrawala",
    "suzuki_kasami",
    "srimani_reddy",
    "raymond_tree",
    "maekawa",
    "leased",
    "e2e",
    "sigma",
    "non_e2e",
    "strawman",
    "sigma_zones",
    "e2e_ft",
    "non_e2e_faults",
]
ROUTED = [name for name in LONG if name != "non_e2e" and issubclass(PROTOCOLS[name], Routed)]
EXPLAINED = [name for name in PROTOCOLS if name in {*QUICK, *LONG}]  # those of `make mutants`
ALL = [*QUICK, *[pytest.param(name, marks=pytest.mark.stress) for name in LONG]]


def test_no_protocol_is_left_out() -> None:
    wanted = {name for name in PROTOCOLS if not name.endswith("_literal")}
    assert {*QUICK, *LONG} == wanted, "add the protocol to LONG in this file (or to QUICK)"


@pytest.mark.parametrize("name", ["non_e2e", *[pytest.param(name, marks=pytest.mark.stress) for name in ROUTED]])
def test_a_mutant_without_a_deletion_passes_every_judge(name: str) -> None:
    """A class loaded from source is not the original class, and no judge may be able to tell the two apart."""
    path = source_of(PROTOCOLS[name])
    module = load_mutant(path.read_text(), str(path))
    with speaking(module):
        assert judge(getattr(module, PROTOCOLS[name].__name__)) == ""


def test_classes_in_other_files_of_a_protocol_are_mutated_too() -> None:
    """End-to-End has its replicas and its timestamps in separate classes and files."""
    assert [cls.__name__ for cls in own_classes(E2E)] == ["E2E", "Voter", "Stamped"]
    numbers = {mutant_at(E2E, number)[0].handler: number for number in range(count_places(E2E))}
    assert judged_at(E2E, numbers["use_vote"]).caught == "liveness"
    assert judged_at(E2E, numbers["next_stamp"]).caught == "TypeError"  # in the base of a base


@pytest.mark.parametrize("name", ALL)
def test_every_deletion_is_noticed_or_explained(name: str) -> None:
    found = list(delete_all(PROTOCOLS[name]))
    survivors = [deleted for deleted in found if not deleted.caught]
    unexplained = [deleted for deleted in survivors if not explain(deleted)]
    assert unexplained == [], "write the reason into src/fairgate/mutation/survivors.py, or remove it"
    assert {(deleted.handler, deleted.statement) for deleted in survivors} == set(SURVIVORS.get(name, {}))


@pytest.mark.parametrize("name", SURVIVORS)
def test_every_explanation_names_a_statement_of_its_protocol(name: str) -> None:
    """The long test above finds a stale explanation too, but only in `make stress`."""
    statements = {
        (handler, ast.unparse(statement).splitlines()[0])
        for cls in own_classes(PROTOCOLS[name])
        for handler, statement, _, _ in places(ast.parse(source_of(cls).read_text()), cls.__name__)
    }
    assert set(SURVIVORS[name]) - statements == set()


@pytest.mark.parametrize(
    "name", [QUICK[0], *[pytest.param(name, marks=pytest.mark.stress) for name in [*QUICK[1:], *LONG]]]
)
def test_the_original_passes_every_judge(name: str) -> None:
    assert judge(PROTOCOLS[name]) == ""


def test_an_endless_loop_is_noticed() -> None:
    numbers = {mutant_at(Leased, number)[0].statement: number for number in range(count_places(Leased))}
    deleted = judged_at(Leased, numbers["self.offer(self.fences.index(NIL), self.queue.pop(0))"])
    assert (deleted.handler, deleted.caught) == ("serve", "RuntimeError")


def test_a_mutant_that_crashes_its_process_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled bases of a mutant do not check for None, for example."""

    def judge_or_crash(protocol: type[Mutex], number: int) -> Deleted:
        if number == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return mutant_at(protocol, number)[0]

    monkeypatch.setattr(deletions, "judged_at", judge_or_crash)
    protocol = PROTOCOLS["centralised"]
    crashed = [deleted for deleted in delete_all(protocol, 2) if deleted.caught]
    assert crashed == [replace(mutant_at(protocol, 1)[0], caught="crash")]


def test_several_workers_find_the_same_mutants() -> None:
    alone, together = (set(delete_all(PROTOCOLS["centralised"], workers)) for workers in (1, 2))
    assert alone == together


def test_loading_a_mutant_leaves_the_originals_messages_unchanged() -> None:
    load_mutant(source_of(PROTOCOLS["bv95"]).read_text(), "mutant")
    assert type(decode(("bv.request", 0, 1, 2))) is Request
