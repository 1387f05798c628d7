"""`fairgate swarm`: many small random simulations of one protocol, and the smallest run that fails."""

import io
import json
import math
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from fairgate.arguments import check_seed
from fairgate.cli import options as args
from fairgate.cli.screen import counted, number, plain_table, progress_bar, seconds, stdout
from fairgate.cli.sim.command import errors_explained, sim_command
from fairgate.cli.swarm.command_line import command_line_of, sim_arguments
from fairgate.errors import BadInput
from fairgate.processes import processors
from fairgate.registry import find_protocol
from fairgate.sim.config import Config
from fairgate.sim.run import simulate
from fairgate.swarm.random_ring_config import random_config
from fairgate.swarm.run import Limits, SwarmReport, swarm
from fairgate.swarm.shrink import Shrunk, shrink

RUNS = 1000

Runs = Annotated[
    int | None,
    args.option(
        args.RUN,
        "Stop after N runs. Default: 1000, or no limit if --minutes is given.",
        name="--runs",
        metavar="N",
        shown=False,
    ),
]
Minutes = Annotated[
    float | None,
    args.option(args.RUN, "Stop after M minutes, or after --runs if that is earlier.", name="--minutes", metavar="M"),
]
Seed = Annotated[
    int, args.option(args.RUN, "Seed of all random choices: the same seed gives the same runs.", metavar="N")
]
Workers = Annotated[
    int | None,
    args.option(args.RUN, "Number of worker processes. Default: one per processor.", metavar="N", shown=False),
]
Journal = Annotated[
    str | None,
    args.option(
        args.OUTPUT,
        "If a run fails, write every step of the smallest failing run to FILE, for `fairgate replay`.",
        metavar="FILE",
    ),
]


@dataclass(frozen=True)
class Minimal:
    """The smallest failing run, and the command that reproduces it; None if no command does."""

    shrunk: Shrunk
    command: str | None


def swarm_command(
    protocol: args.Protocol,
    runs: Runs = None,
    minutes: Minutes = None,
    seed: Seed = 1,
    workers: Workers = None,
    journal: Journal = None,
    as_json: args.Json = False,
) -> int:
    """Test a protocol in many small random simulations, with every fault it claims to survive.

    All properties are checked after every event. If a run fails, it is shrunk
    to the smallest run that still fails, and printed as a `fairgate sim`
    command. The exit status is then 1.

    The table lists the marks of the protocol: rare branches that it names in
    its source. A mark that no run reached is shown as "never".

    [bold]1000 runs[/bold]

        fairgate swarm fair_k

    [bold]The literal text of a paper[/bold], and what is wrong with it

        fairgate swarm raymond_fd_literal --runs 200

    [bold]Overnight[/bold]: 8 hours, with another seed than last night

        fairgate swarm raymond_fd --minutes 480 --seed 2
    """
    name = find_protocol(protocol).about.name
    limits = read_limits(runs, minutes)
    check_rest(seed, workers, journal)
    with progress_bar(f"{name}, runs" if limits.runs else f"{name}, seconds", total(limits)) as done:
        report = swarm(
            name,
            seed,
            limits,
            workers or processors(),
            lambda report: done(report.runs if limits.runs else int(report.seconds)),
        )
    try:
        minimal = smallest(report, journal)
    except KeyboardInterrupt:  # report what was found, even if it is not shrunk
        report.interrupted, minimal = True, None
    if as_json:
        print(json.dumps(as_object(report, minimal)))
    else:
        show(report, minimal)
    return 130 if report.interrupted else int(bool(report.failures))


def read_limits(runs: int | None, minutes: float | None) -> Limits:
    if runs is not None and runs < 1:
        raise BadInput(f"--runs must be at least 1, not {runs}")
    if minutes is not None and not (minutes > 0 and math.isfinite(minutes)):
        raise BadInput(f"--minutes must be more than 0, not {minutes:g}")
    if minutes is None:
        return Limits(RUNS if runs is None else runs)
    return Limits(runs, 60.0 * minutes)


def total(limits: Limits) -> int:
    return limits.runs or math.ceil(limits.seconds or 0)


def check_rest(seed: int, workers: int | None, journal: str | None) -> None:
    """Raises BadInput for errors that should not surface only at the end of a long run."""
    check_seed(seed)
    if workers is not None and workers < 1:
        raise BadInput(f"--workers must be at least 1, not {workers}")
    if journal is not None and not Path(journal).absolute().parent.is_dir():
        raise BadInput(f"cannot write the journal {journal}: its directory does not exist")


def smallest(report: SwarmReport, journal: str | None) -> Minimal | None:
    """The first failing run, shrunk; None if no run failed or Ctrl-C ended the swarm."""
    if not report.failures or report.interrupted:
        return None
    run, broken = report.failures[0]
    shrunk = shrink(random_config(report.protocol, report.seed, run), broken)
    if journal is not None:
        write_journal(shrunk.config, journal)
    return Minimal(
        shrunk, command_line_of(shrunk.config) if shrunk.plain and exit_code_of(shrunk.config) == 1 else None
    )


def write_journal(config: Config, journal: str) -> None:
    with errors_explained(config, journal):
        try:
            simulate(config, journal=journal)
        except OSError:
            raise
        except Exception:  # the failure itself: the journal ends right before it
            return


def exit_code_of(config: Config) -> int:
    """The exit code of `fairgate sim` for this configuration, parsed and run like a user's command line."""
    app = typer.Typer(add_completion=False)
    app.command()(sim_command)
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        try:
            code: int | None = app(args=sim_arguments(config), standalone_mode=False)
        except BadInput:
            return 2
        except Exception:  # as a script, this would end with exit code 1
            return 1
    return code or 0


def as_object(report: SwarmReport, minimal: Minimal | None) -> dict[str, Any]:
    return {
        "protocol": report.protocol,
        "runs": report.runs,
        "failures": len(report.failures),
        "seed": report.seed,
        "marks": dict(report.marks),
        "missed": report.missed,
        "broken": minimal.shrunk.broken if minimal else None,
        "minimal": minimal.command if minimal else None,
        "seconds": report.seconds,
        "interrupted": report.interrupted,
    }


def show(report: SwarmReport, minimal: Minimal | None) -> None:
    console = stdout()
    console.print(marks_table(report), "", verdict(report), sep="\n")
    if minimal is not None:
        shrunk = minimal.shrunk
        console.print(f"\nSmallest run that fails, after {counted(shrunk.runs, 'run')} of shrinking: {shrunk.broken}")
        console.print(Text(f"  {minimal.command or unseen(shrunk)}", style="cyan"), soft_wrap=True)


def unseen(shrunk: Shrunk) -> str:
    """The nearest command line, and why it does not reproduce the failure."""
    why = "does not fail as a command" if shrunk.plain else "fails only where all tokens are counted after every event"
    return f"{command_line_of(shrunk.config)}  ({why})"


def marks_table(report: SwarmReport) -> Table:
    table = plain_table(f"{report.protocol}: {counted(report.runs, 'run')}, seed {report.seed}")
    table.add_column("mark")
    table.add_column("reached", justify="right", no_wrap=True)
    for mark, hits in report.marks.items():
        table.add_row(mark, number(hits) if hits else "never", style=None if hits else "yellow")
    return table


def verdict(report: SwarmReport) -> Text:
    until = " until it was interrupted" if report.interrupted else ""
    took = f"{counted(report.runs, 'run')} in {seconds(report.seconds)}{until}"
    if not report.failures:
        return Text(f"no failure in {took}", style="bold green" if report.runs else "yellow")
    run, broken = report.failures[0]
    return Text(f"{counted(len(report.failures), 'failure')} in {took}; the first is run {run}: {broken}", "bold red")
