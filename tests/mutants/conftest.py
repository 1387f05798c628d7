"""Parametrizes the tests of copies.py with the table of mutants of the module that imports them."""

import pytest

from tests.mutants import copies


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if metafunc.function.__module__ != copies.__name__:
        return
    mutants = metafunc.module.MUTANTS
    if "mutant" in metafunc.fixturenames:
        metafunc.parametrize("mutant", mutants.values(), ids=mutants)
    else:
        metafunc.parametrize("node", sorted({mutant.test for mutant in mutants.values()}))
