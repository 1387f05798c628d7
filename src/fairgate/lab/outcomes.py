"""Outcomes on disk: ID.json has what a report shows of an experiment, ID.csv one row per run, ID.points.csv the figure.

So a report can have experiments that were run at different times, and one of them can be run again alone.
"""

import json
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fairgate import __version__
from fairgate.errors import BadInput
from fairgate.lab.catalogue import all_experiments
from fairgate.lab.experiment import Claim, Experiment, Outcome
from fairgate.lab.plot import Picture
from fairgate.lab.sweeps import Row
from fairgate.lab.tables import write_page, write_rows
from fairgate.processes import processors
from fairgate.sim.run import kind_of_build


@dataclass(frozen=True)
class About:
    """How a run was asked for."""

    size: str
    seed: int
    latency: str | None  # a file, if it was given


@dataclass(frozen=True)
class Made:
    """What made a run, and when."""

    version: str
    python: str
    machine: str
    day: str


@dataclass(frozen=True)
class Finished:
    """An experiment that was run. Its outcome may lack the rows, which are in ID.csv."""

    experiment: Experiment
    about: About
    made: Made
    outcome: Outcome


def finished(experiment: Experiment, about: About, outcome: Outcome) -> Finished:
    cores = processors()
    made = Made(
        f"fairgate {__version__} ({kind_of_build()})",
        f"Python {platform.python_version()}",
        f"{platform.machine()} with {cores} {'core' if cores == 1 else 'cores'}",
        f"{datetime.now(UTC):%Y-%m-%d}",
    )
    return Finished(experiment, about, made, outcome)


def save(folder: Path, each: Finished) -> None:
    id, outcome = each.experiment.id, each.outcome
    write_rows(folder / f"{id}.csv", [plain(row) for row in outcome.rows])
    write_rows(folder / f"{id}.points.csv", drawn_points(outcome.pictures))
    stored = {"about": asdict(each.about), "made": asdict(each.made), "outcome": asdict(replace(outcome, rows=[]))}
    write_page(folder / f"{id}.json", json.dumps(stored))


def plain(row: Row) -> Row:
    return {name: value for name, value in row.items() if not isinstance(value, list | dict)}


def drawn_points(pictures: Sequence[Picture]) -> list[Row]:
    return [
        {"picture": number, "line": line, picture.x: x, picture.y: y, "margin": margin}
        for number, picture in enumerate(pictures, 1)
        for line, points in picture.series.items()
        for x, y, margin in points
    ]


def saved(folder: Path, about: About | None = None) -> list[Finished]:
    """All experiments in this directory, in the order of the catalogue; only those asked for like this, if it is given.

    Raises BadInput if a file cannot be read.
    """
    found = [
        read(path, each) for each in all_experiments() if (path := folder / f"{each.id}.json").is_file()
    ]  # files of experiments that no longer exist stay unread
    return [each for each in found if about is None or each.about == about]


def read(path: Path, experiment: Experiment) -> Finished:
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        return Finished(experiment, About(**stored["about"]), Made(**stored["made"]), read_outcome(stored["outcome"]))
    except (OSError, ValueError, KeyError, TypeError) as wrong:
        raise BadInput(
            f"cannot read {path}: it is not an outcome of this version; run {experiment.id} again"
        ) from wrong


def read_outcome(stored: dict[str, Any]) -> Outcome:
    pictures = [Picture(**each) for each in stored.pop("pictures")]
    claims = [Claim(**each) for each in stored.pop("claims")]
    return Outcome(pictures=pictures, claims=claims, **stored)
