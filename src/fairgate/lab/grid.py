"""Grids of parameters: every combination of the values that each parameter takes.

50,100,200      these values
1:10:lin4       four values from 1 to 10 at equal distances: 1, 4, 7, 10
0.01:1:log3     three values from 0.01 to 1 at equal ratios: 0.01, 0.1, 1
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from itertools import product
from typing import Any

from fairgate.errors import BadInput
from fairgate.sim.config import Config

RANGE = re.compile(r"(?P<low>[^:,]+):(?P<high>[^:,]+):(?P<kind>lin|log)(?P<count>\d+)")
MOST_VALUES = 10_000
TYPES: dict[str, type] = {field.name: type(field.default) for field in fields(Config)}
OPTION = "option."  # in front of the name of a protocol's option


def linear(low: float, high: float, count: int) -> list[float]:
    """So many values at equal distances, both ends included."""
    if count == 1:
        return [low]
    return [low + (high - low) * i / (count - 1) for i in range(count)]


def logarithmic(low: float, high: float, count: int) -> list[float]:
    """So many values at equal ratios, both ends included."""
    if not 0 < low <= high:
        raise BadInput(f"equal ratios need values above 0, the lower one first, not {low:g} and {high:g}")
    if count == 1:
        return [low]
    return [low * (high / low) ** (i / (count - 1)) for i in range(count)]


def read_values(name: str, text: str) -> list[Any]:
    """The values of a parameter of `Config`. BadInput if they cannot be read."""
    found = RANGE.fullmatch(text)
    if found is None:
        return [read_value(name, part) for part in text.split(",") if part] or refuse(name, text)
    count = int(found["count"])
    if not 1 <= count <= MOST_VALUES:
        raise BadInput(f"{name} {text}: the number of values must be 1 to {MOST_VALUES}, not {count}")
    spread = logarithmic if found["kind"] == "log" else linear
    values = spread(read_number(name, found["low"]), read_number(name, found["high"]), count)
    return list(dict.fromkeys(round(value) if TYPES.get(name) is int else tidy(value) for value in values))


def tidy(value: float) -> float:
    """Without the noise in the last digits: 0.1 instead of 0.10000000000000002."""
    return float(f"{value:.12g}")


def refuse(name: str, text: str) -> list[Any]:
    raise BadInput(f"cannot read {name} {text!r}: write values such as 50,100,200 or 0.01:1:log8 or 1:10:lin4")


def read_number(name: str, word: str) -> float:
    try:
        return float(word)
    except ValueError:
        raise BadInput(f"cannot read {name} {word!r}: it must be a number") from None


def read_value(name: str, word: str) -> Any:
    kind = TYPES.get(name, str)
    if kind is bool:
        if word.lower() not in ("true", "false"):
            raise BadInput(f"cannot read {name} {word!r}: it must be true or false")
        return word.lower() == "true"
    if kind is int:
        if not re.fullmatch(r"-?\d+", word):
            raise BadInput(f"cannot read {name} {word!r}: it must be a whole number")
        return int(word)
    return read_number(name, word) if kind is float else word


def as_values(value: Any) -> Sequence[Any]:
    """What was given for a parameter from Python: one value, or several."""
    return list(value) if isinstance(value, Iterable) and not isinstance(value, str | dict) else [value]


def points(base: Config, grid: Mapping[str, Sequence[Any]], trials: int) -> Iterator[Config]:
    """Every combination of the grid's values, each with the seeds seed..seed+trials-1.

    The last parameter changes fastest. A name that begins with `option.` is an option of the protocol.
    """
    for name in grid:
        if name not in TYPES and not name.startswith(OPTION):
            raise BadInput(f"there is no parameter {name!r}: choose from {', '.join(TYPES)}, or option.NAME")
    for values in product(*grid.values()):
        chosen = dict(zip(grid, values, strict=True))
        options = {name.removeprefix(OPTION): chosen.pop(name) for name in list(chosen) if name.startswith(OPTION)}
        config = replace(base, **chosen)
        config = replace(config, options={**config.options, **options})
        for trial in range(trials):
            yield replace(config, seed=config.seed + trial)
