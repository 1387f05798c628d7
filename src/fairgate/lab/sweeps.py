"""Sweeps: the same simulation at every point of a grid of parameters, as a table with one row per run.

    from fairgate.lab.sweeps import sweep
    rows = sweep("fair_k", "bv95", nodes=[50, 100], rate=logarithmic(0.01, 1, 8), trials=20)

Rows are dicts: the parameters that vary, and every number of the result. Their order and their numbers do not depend on
where the runs happen. `executor` is any `concurrent.futures.Executor`, such as that of a Dask cluster; without one,
`workers` processes share the runs.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import nullcontext
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from fairgate.errors import BadInput
from fairgate.known_options import option_of
from fairgate.lab.cache import Cache, described
from fairgate.lab.grid import TYPES, as_values, points
from fairgate.lab.workers import spread
from fairgate.processes import processors
from fairgate.registry import find_protocol
from fairgate.sim.config import Config, default_k
from fairgate.sim.config import check as check_config
from fairgate.sim.run import simulate
from fairgate.sim.summary import Result

Row = dict[str, Any]
Progress = Callable[[int, int], None]  # runs that are done, and all

LEFT_OUT = ("interrupted", "seconds")  # of a result: what differs from run to run
NUMBERS = (int, float)


def number_columns() -> list[str]:
    """The columns of numbers that every table has, besides options of the protocol."""
    parameters = [name for name, kind in TYPES.items() if kind in NUMBERS]
    results = [field.name for field in fields(Result) if field.type in NUMBERS and field.name not in LEFT_OUT]
    return list(dict.fromkeys([*parameters, *results, *(f"load.{name}" for name in ("mean", "p50", "p90", "max"))]))


def sweep(
    *protocols: str,
    trials: int = 1,
    workers: int | None = None,
    executor: Executor | None = None,
    cache: str | Path | None = None,
    progress: Progress | None = None,
    series: Sequence[str] = (),
    **grid: Any,
) -> list[Row]:
    """Simulate at every point of the grid and return one row per run, in the order of the grid.

    Args:
        protocols: Names of protocols.
        trials: Runs of each point, with successive seeds.
        workers: Processes that share the runs. Default: one per processor.
        executor: Where to run instead.
        cache: A file of earlier results: what is in it is not run again.
        progress: Called with the number of runs that are done and of all runs.
        series: What to keep besides numbers, as lists or dicts: names of `SERIES`.
        grid: Parameters of `fairgate.sim.config.Config`, each with one value or several. For an option of the
            protocol, use `**{"option.NAME": values}`.

    Raises:
        BadInput: A protocol, a parameter or a value does not exist or makes no sense.
    """
    configs = plan(protocols, {name: as_values(values) for name, values in grid.items()}, trials)
    return run_all(configs, workers or processors(), executor, cache, progress, series)


def plan(protocols: Sequence[str], grid: Mapping[str, Sequence[Any]], trials: int) -> list[Config]:
    """The configurations of all runs, each checked."""
    if not protocols:
        raise BadInput("name at least one protocol")
    if trials < 1:
        raise BadInput(f"trials must be at least 1, not {trials}")
    found = [find_protocol(name) for name in protocols]
    whole = {"protocol": [protocol.about.name for protocol in found], **grid}
    for name, values in whole.items():
        twice = next((value for value, count in Counter(values).items() if count > 1), None)
        if twice is not None:
            shown = "+".join(twice) if isinstance(twice, tuple) else twice
            raise BadInput(f"{name} has {shown} twice: name each value once, and use trials for several runs")
    configs = list(points(Config(), whole, trials))
    if "k" not in grid:
        configs = [replace(config, k=default_k(find_protocol(config.protocol), config.nodes)) for config in configs]
    for config in configs[::trials]:
        check(config)
    return configs


def check(config: Config) -> None:
    protocol = find_protocol(config.protocol)
    for name in config.options:
        option_of(protocol, config.stack, name)
    check_config(config, protocol)


def run_all(
    configs: Sequence[Config],
    workers: int = 1,
    executor: Executor | None = None,
    cache: str | Path | None = None,
    progress: Progress | None = None,
    series: Sequence[str] = (),
) -> list[Row]:
    """Run these configurations, as far as the cache does not have them, and return a row for each."""
    rows: dict[int, Row] = {}
    with Cache(Path(cache)) if cache is not None else nullcontext() as known:
        for place, config in enumerate(configs):
            row = known.get(described(config)) if known is not None else None
            if row is not None and all(name in row for name in series):
                rows[place] = row
        todo = [(place, config, tuple(series)) for place, config in enumerate(configs) if place not in rows]
        told(progress, rows, configs)
        for place, row in spread(run_one, todo, workers, executor):
            rows[place] = row
            if known is not None:
                known.put(described(configs[place]), row)
            told(progress, rows, configs)
    return [rows[place] | layers(config) for place, config in enumerate(configs)]


def layers(config: Config) -> Row:
    """The layers below the protocol, if there are any: rows of different overlays must not look alike."""
    return {"layers": "+".join(config.stack)} if config.stack else {}


def told(progress: Progress | None, rows: Mapping[int, Row], configs: Sequence[Config]) -> None:
    if progress is not None:
        progress(len(rows), len(configs))


def run_one(task: tuple[int, Config, Sequence[str]]) -> tuple[int, Row]:
    """The row's place in the table, and the row."""
    place, config, series = task
    return place, row_of(config, series)


SHARES = 200  # steps between the shortest wait and the longest


def wait_shares(result: Result) -> list[float]:
    ordered = sorted(result.waits["wait"])
    return [ordered[round(step * (len(ordered) - 1) / SHARES)] for step in range(SHARES + 1)] if ordered else []


SERIES: dict[str, Callable[[Result], Any]] = {
    "node_maxima": lambda result: list(result.node_maxima),  # the longest wait of each node
    "loads": lambda result: list(result.loads),  # messages received by each node
    "usage": lambda result: [list(change) for change in result.usage],  # (time, number inside); needs Config.usage
    "messages": lambda result: dict(result.messages),  # by kind
    "wait_shares": wait_shares,  # waits at equal shares from 0 to 1; needs Config.waits
}


def row_of(config: Config, series: Sequence[str]) -> Row:
    result = simulate(config)
    if result.interrupted:  # a part of a run is no result, and must not get into the cache
        raise KeyboardInterrupt
    row = {name: value for name, value in config.describe().items() if is_plain(value)}
    row |= {f"option.{name}": value for name, value in config.options.items()}
    found = result.as_json()
    row |= {name: value for name, value in found.items() if is_plain(value) and name not in LEFT_OUT}
    row |= {f"load.{name}": value for name, value in found["load"].items()}
    return row | {name: SERIES[name](result) for name in series}


def is_plain(value: Any) -> bool:
    return isinstance(value, bool | int | float | str)
