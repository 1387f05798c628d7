"""`fairgate sweep`: the same simulation at every point of a grid of parameters, written as a table."""

import json
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any

import typer

from fairgate.cli import options as args
from fairgate.cli.exits import INTERRUPTED, complain
from fairgate.cli.screen import counted, progress_bar
from fairgate.cli.sim.command import check_config, overlay_layer, ring_layer
from fairgate.cli.values import read_option
from fairgate.errors import BadInput
from fairgate.known_options import option_of
from fairgate.lab.cluster import dask_executor
from fairgate.lab.grid import OPTION, TYPES, read_values
from fairgate.lab.plot import check_matplotlib, draw, no_column
from fairgate.lab.sweep_plot import check_lines, lines_of, picture_of
from fairgate.lab.sweeps import number_columns, plan, run_all
from fairgate.lab.tables import check_name, write_rows
from fairgate.processes import processors
from fairgate.registry import find_protocol
from fairgate.sim.config import backup_stack

IN_OPTIONS = ("replicas", "quorum", "responses", "backups")  # parameters of `sim` that are options of protocols
NOT_SWEPT = ("protocol", "options", "stack", "seed", "check", "usage", "waits", "marks", "census_every")

Words = Annotated[
    list[str],
    typer.Argument(
        metavar="PROTOCOL... [--PARAMETER VALUES]...",
        help="Protocols, and options of `fairgate sim` with several values each.",
    ),
]
Out = Annotated[
    str | None,
    args.option(args.OUTPUT, "Write the table to FILE: .csv, .parquet or .jsonl.", name="--out", metavar="FILE"),
]
Plot = Annotated[
    str | None,
    args.option(
        args.OUTPUT,
        "Draw Y against X, such as rate:wait_max: one line per protocol and combination of the other swept parameters,"
        " with the 95 % intervals of the trials. The file is called like --out, with the ending .svg.",
        name="--plot",
        metavar="X:Y",
    ),
]


def sweep_command(
    words: Words,
    trials: Annotated[int, args.option(args.RUN, "Runs of each point, with successive seeds.", metavar="N")] = 1,
    seed: Annotated[int, args.option(args.RUN, "The first seed.", metavar="N")] = 1,
    workers: Annotated[
        int | None, args.option(args.RUN, "Worker processes. Default: one per processor.", metavar="N", shown=False)
    ] = None,
    dask: args.Dask = None,
    out: Out = None,
    plot: Plot = None,
    fresh: Annotated[bool, args.option(args.RUN, "Run everything again.", name="--fresh")] = False,
    as_json: args.Json = False,
) -> int:
    r"""Simulate at every point of a grid of parameters, and write a table with one row per run.

    Every option of `fairgate sim` that has a value can have several:

        50,100,200      these values

        1:10:lin4       four values at equal distances: 1, 4, 7, 10

        0.01:1:log8     eight values at equal ratios

    [bold]Waits of two protocols[/bold], with a plot

        fairgate sweep fair_k bv95 --nodes 50,100,200 --rate 0.01:1:log8 \
            --trials 20 --out waits.csv --plot rate:wait_max

    Results are kept in FILE.cache beside the table. A sweep that was
    interrupted goes on where it stopped, and a larger one runs only what is
    new.
    """
    protocols, given = split(words)
    check(workers, out, as_json)
    grid = {**grid_of(given, protocols), "seed": [seed]}
    drawn = {"protocol": protocols, **grid}
    check_plot(plot, out, drawn)
    configs = plan(protocols, grid, trials)
    for config in configs[::trials]:
        check_config(config, find_protocol(config.protocol))
    path = Path(out) if out is not None else None
    cache = path.with_name(f"{path.name}.cache") if path is not None else None
    if cache is not None and fresh:
        cache.unlink(missing_ok=True)
    try:
        with (
            dask_executor(dask) if dask is not None else nullcontext() as executor,
            progress_bar("runs", len(configs)) as done,
        ):
            rows = run_all(configs, workers or processors(), executor, cache, lambda count, _: done(count))
    except KeyboardInterrupt:
        if cache is not None:
            complain(f"interrupted: the same command goes on from here (results so far are in {cache})")
        return INTERRUPTED
    return finish(rows, path, plot, drawn, as_json)


def finish(
    rows: list[dict[str, Any]], path: Path | None, plot: str | None, grid: Mapping[str, Sequence[Any]], as_json: bool
) -> int:
    if path is not None:
        write_rows(path, rows)
        if plot is not None:
            draw_plot(rows, path, plot, grid)
    if as_json:
        print(json.dumps(rows))
    elif path is not None:
        print(f"wrote {counted(len(rows), 'row')} to {path}")
    broken = sum(row["violations"] for row in rows)
    if broken:
        complain(f"the runs had {counted(broken, 'violation')}: see the column violations")
    return int(bool(broken))


def draw_plot(rows: list[dict[str, Any]], path: Path, plot: str, grid: Mapping[str, Sequence[Any]]) -> None:
    x, y = plot.split(":")
    picture = path.with_suffix(".svg")
    draw(picture, picture_of(rows, x, y, lines_of(grid, x)))
    print(f"drew {picture}")


def check(workers: int | None, out: str | None, as_json: bool) -> None:
    if out is None and not as_json:
        raise BadInput("where to? Use --out FILE (.csv, .parquet or .jsonl), or --json")
    if workers is not None and workers < 1:
        raise BadInput(f"--workers must be at least 1, not {workers}")
    if out is not None:
        check_name(Path(out))


def check_plot(plot: str | None, out: str | None, grid: Mapping[str, Sequence[Any]]) -> None:
    """Better before a long sweep than after it."""
    if plot is None:
        return
    if out is None:
        raise BadInput("--plot needs --out: the picture is written beside the table")
    if plot.count(":") != 1:
        raise BadInput(f"cannot read --plot {plot}: write it as X:Y, such as rate:wait_max")
    known = [*number_columns(), *(name for name in grid if name.startswith(OPTION))]
    for name in plot.split(":"):
        if name not in known:
            raise BadInput(no_column(name, known))
    check_lines(grid, plot.split(":")[0])
    check_matplotlib()


def split(words: Sequence[str]) -> tuple[list[str], list[tuple[str, str]]]:
    """The protocols, and the parameters with their values."""
    protocols: list[str] = []
    given: list[tuple[str, str]] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if not word.startswith("--"):
            protocols.append(word)
            continue
        name, equals, value = word[2:].partition("=")
        if not equals:
            if not rest:
                raise BadInput(f"--{name} needs a value")
            value = rest.pop(0)
        given.append((name.replace("-", "_"), value))
    return protocols, given


def grid_of(given: Sequence[tuple[str, str]], protocols: Sequence[str]) -> dict[str, list[Any]]:
    grid: dict[str, list[Any]] = {}
    stacks = stacks_of([name for name, _ in given], dict(given).get("overlay"))
    if stacks:
        grid["stack"] = stacks
    for name, text in given:
        if name == "option":
            option, _, values = text.partition("=")
            stack = stacks[0] if stacks else ()
            grid[OPTION + option] = [read_for_all(option, value, protocols, stack) for value in values.split(",")]
        elif name in IN_OPTIONS:
            grid[OPTION + name] = read_values("nodes" if name != "responses" else name, text)
        elif name in TYPES and name not in NOT_SWEPT:
            grid[name] = read_values(name, text)
        elif name != "overlay":
            raise BadInput(no_parameter(name.replace("_", "-")))
    return grid


def stacks_of(names: Sequence[str], overlay: str | None) -> list[tuple[str, ...]]:
    """The layers below the protocol: each overlay that was named, with backups if their number was given."""
    twice = next((name for name in names if name != "option" and names.count(name) > 1), None)
    if twice is not None:
        raise BadInput(f"--{twice.replace('_', '-')} was given twice: write its values as one list, such as 5,10")
    if "backups" in names:
        return [backup_stack(ring_layer(value)) for value in (overlay.split(",") if overlay else [None])]
    return [overlay_layer(value) for value in overlay.split(",")] if overlay else []


def no_parameter(name: str) -> str:
    known = [one.replace("_", "-") for one in (*TYPES, *IN_OPTIONS, "overlay") if one not in NOT_SWEPT]
    near = get_close_matches(name, known, 3)
    advice = f"did you mean --{' or --'.join(near)}?" if near else f"choose from {', '.join(known)}"
    return f"there is no parameter --{name}: {advice}"


def read_for_all(option: str, word: str, protocols: Sequence[str], stack: Sequence[str]) -> Any:
    """A value of an option, which all protocols must have."""
    known = [option_of(find_protocol(name), stack, option) for name in protocols]
    return read_option(option, word, known[0] if known else "")
