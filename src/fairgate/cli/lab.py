"""`fairgate lab`: the figures and tables of the papers, measured again, as one report."""

import json
import os
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from fairgate.arguments import check_seed
from fairgate.cli import options as args
from fairgate.cli.exits import INTERRUPTED, complain
from fairgate.cli.screen import plain_table, progress_bar, stdout
from fairgate.errors import BadInput
from fairgate.lab.catalogue import all_experiments, chosen
from fairgate.lab.cluster import dask_executor
from fairgate.lab.experiment import Bench, Experiment, Outcome
from fairgate.lab.outcomes import About, finished, save, saved
from fairgate.lab.plot import check_matplotlib
from fairgate.lab.report import Section, write_report
from fairgate.processes import processors
from fairgate.sim.build import make_latency
from fairgate.sim.config import Config

CACHE = "results.cache"
LEGEND = (
    "Seconds as measured on two cores that others used too, compiled. With --quick, FK.2 to FK.5 share runs, and so do"
    " SG.7 and SG.4n: the later ones take longer alone. About: estimated for the experiment alone, from processor time"
    " and one trial of each point. To run some: fairgate lab run FK.3 EE.5"
)


def list_command(
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON array with one object per experiment.")] = False,
) -> None:
    """List all experiments, and how long they take."""
    if as_json:
        print(json.dumps([described(each) for each in all_experiments()]))
        return
    table = plain_table("Experiments")
    table.add_column("id", style="bold", no_wrap=True)
    table.add_column("what")
    table.add_column("where")
    table.add_column("--quick", justify="right", no_wrap=True)
    table.add_column("--paper", justify="right", no_wrap=True)
    for each in all_experiments():
        paper = lasting(each.paper_seconds, each.estimated)
        table.add_row(each.id, each.title, each.section, lasting(each.quick_seconds), paper)
    stdout().print(table, "", LEGEND, sep="\n")


def described(each: Experiment) -> dict[str, object]:
    return {
        "id": each.id,
        "title": each.title,
        "section": each.section,
        "quick_seconds": each.quick_seconds,
        "paper_seconds": each.paper_seconds,
        "paper_estimated": each.estimated,
    }


def lasting(seconds: float | None, estimated: bool = False) -> str:
    if seconds is None:
        return "not measured"
    return f"{'about ' if estimated else ''}{seconds:g} s"


Ids = Annotated[list[str], typer.Argument(metavar="ID...", help="Experiments, or all; `fairgate lab list` lists them.")]
Latency = Annotated[
    str | None,
    args.option(
        args.NETWORK, "Round-trip times for Fair-k's wide area, instead of the synthetic one.", "--latency", "FILE"
    ),
]


def run_command(
    ids: Ids,
    paper: Annotated[
        bool, args.option(args.RUN, "The size of the paper, or a smaller one that shows the effect.", "--paper/--quick")
    ] = False,
    workers: Annotated[
        int | None, args.option(args.RUN, "Worker processes. Default: one per processor.", metavar="N", shown=False)
    ] = None,
    dask: args.Dask = None,
    out: Annotated[
        str, args.option(args.OUTPUT, "Directory for the report, the data and earlier results.", metavar="DIR")
    ] = "lab-results",
    seed: Annotated[int, args.option(args.RUN, "The first seed.", metavar="N")] = 1,
    latency: Latency = None,
) -> int:
    """Run experiments, and write a report with figures, data and the verdict on each claim.

    [bold]Two figures[/bold], in seconds

        fairgate lab run FK.3 EE.5

    [bold]Everything[/bold], in the size of the papers

        fairgate lab run all --paper --out papers-report

    DIR/report.html is written anew after each experiment. It also has the
    experiments of earlier commands with the same size, seed and latency. Every
    finished run is kept in DIR: after Ctrl-C the same command goes on where it
    stopped.
    """
    experiments = chosen(ids)
    if workers is not None and workers < 1:
        raise BadInput(f"--workers must be at least 1, not {workers}")
    check_seed(seed)
    check_matplotlib()
    about = About("paper" if paper else "quick", seed, check_latency(latency))
    with dask_executor(dask) if dask is not None else nullcontext() as executor:
        folder = check_folder(out)
        bench = Bench(about.size, seed, about.latency or "wan", workers or processors(), executor, folder / CACHE)
        try:
            return run_experiments(experiments, bench, about, folder)
        except KeyboardInterrupt:
            complain(f"interrupted: the same command goes on from here (results so far are in {folder})")
            return INTERRUPTED


def run_experiments(experiments: Sequence[Experiment], bench: Bench, about: About, folder: Path) -> int:
    sections = {each.experiment.id: Section(each, folder) for each in saved(folder, about)}
    for number, each in enumerate(experiments, 1):
        with progress_bar(f"{each.id} ({number} of {len(experiments)}), runs", 1) as done:
            bench.progress = done
            outcome = each.run(bench)
        whole = finished(each, about, outcome)
        save(folder, whole)
        sections[each.id] = Section(whole, folder)
        path = write_report(folder, [sections[one.id] for one in all_experiments() if one.id in sections])
        print(f"{each.id:9} {outcome.seconds:7.1f} s  {each.title} ({verdicts(outcome)})", flush=True)
        for note in outcome.notes:
            print(f"{'':9} {note}")
    print(f"wrote {path}")
    return 0


def verdicts(outcome: Outcome) -> str:
    found = [claim.verdict for claim in outcome.claims]
    return ", ".join(f"{name}: {found.count(name)}" for name in dict.fromkeys(found))


def check_latency(name: str | None) -> str | None:
    """The file's absolute path, because workers may run elsewhere; raises BadInput if it is not usable."""
    if name is None:
        return None
    path = str(Path(name).absolute())
    make_latency(Config(latency=path))
    return path


def check_folder(name: str) -> Path:
    folder = Path(name)
    if not name or folder.is_file():
        raise BadInput(f"--out must be a directory, not {f'the file {name}' if name else 'empty'}")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as wrong:
        raise BadInput(f"cannot make the directory {folder}: {wrong.strerror}; choose another with --out") from wrong
    if not os.access(folder, os.W_OK):
        raise BadInput(f"cannot write to the directory {folder}: choose another with --out")
    return folder


COMMANDS: dict[str, Callable[..., int | None]] = {"list": list_command, "run": run_command}
