"""The mutants that only `make mutants` runs still fit the code: each text is there once, and its test exists."""

from __future__ import annotations

from importlib import import_module

import pytest

from tests.mutants.copies import PACKAGE, PROJECT, Mutant

MODULES = ("test_live", "test_live_clusters", "test_room_live", "test_shares")


def mutants() -> list[tuple[str, Mutant]]:
    return [each for name in MODULES for each in import_module(f"tests.mutants.{name}").MUTANTS.items()]


@pytest.mark.parametrize(("rule", "mutant"), mutants(), ids=[rule for rule, _ in mutants()])
def test_a_mutant_fits_the_code(rule: str, mutant: Mutant) -> None:
    assert (PACKAGE / mutant.file).read_text().count(mutant.old) == 1, rule
    file, _, test = mutant.test.partition("::")
    text = (PROJECT / "tests" / (file if "/" in file else f"live/{file}")).read_text()
    assert f"def {test.partition('[')[0]}(" in text, rule
