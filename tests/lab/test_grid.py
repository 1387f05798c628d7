"""How grids of parameters are written and what they mean."""

from __future__ import annotations

from typing import Any

import pytest

from fairgate.errors import BadInput
from fairgate.lab.grid import points, read_values
from fairgate.sim.config import Config


@pytest.mark.parametrize(
    ("name", "text", "values"),
    [
        ("nodes", "50,100,200", [50, 100, 200]),
        ("nodes", "1:10:lin4", [1, 4, 7, 10]),
        ("rate", "0.01:1:log3", [0.01, 0.1, 1.0]),
        ("nodes", "1:4:log20", [1, 2, 3, 4]),  # rounded, without repetitions
        ("rate", "0.5", [0.5]),
        ("latency", "wan,1", ["wan", "1"]),
        ("exponential_cs", "true,false", [True, False]),
        ("rate", "2:3:lin1", [2.0]),
    ],
)
def test_values_are_read(name: str, text: str, values: list[Any]) -> None:
    assert read_values(name, text) == values


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("nodes", "1.5", "whole number"),
        ("rate", "fast", "must be a number"),
        ("rate", "", "write values such as"),
        ("rate", "0:1:log3", "above 0"),
        ("rate", "1:2:lin0", "number of values must be"),
        ("exponential_cs", "maybe", "true or false"),
    ],
)
def test_what_cannot_be_read_is_refused_in_one_line(name: str, text: str, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        read_values(name, text)


def test_every_combination_is_a_point_with_its_own_seeds() -> None:
    found = list(points(Config(seed=7), {"nodes": [5, 9], "option.cache": ["a", "b"]}, 2))
    assert [(one.nodes, one.options["cache"], one.seed) for one in found] == [
        (5, "a", 7), (5, "a", 8), (5, "b", 7), (5, "b", 8), (9, "a", 7), (9, "a", 8), (9, "b", 7), (9, "b", 8),
    ]  # fmt: skip


def test_an_unknown_parameter_is_refused() -> None:
    with pytest.raises(BadInput, match="no parameter 'speed'"):
        list(points(Config(), {"speed": [1]}, 1))
