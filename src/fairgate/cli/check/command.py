"""`fairgate check`: explore every run of a small system, and show the shortest one that violates a property."""

import json
from collections.abc import Callable
from pathlib import Path

from fairgate.check.case import Case
from fairgate.check.census import CensusModel
from fairgate.check.counterexample import Counterexample
from fairgate.check.explore import CheckReport, Explorer
from fairgate.check.homes import HomesModel
from fairgate.check.model import Model
from fairgate.cli import options as shared
from fairgate.cli.check import options as args
from fairgate.cli.check.view import exploring, report_table, verdict_of
from fairgate.cli.screen import can_draw, line_width, stdout
from fairgate.cli.sim.command import explain_error
from fairgate.cli.values import read_options
from fairgate.errors import BadInput
from fairgate.registry import find_protocol
from fairgate.sim.step_errors import add_place

DEFAULT = Case("")


def read_rates(text: str | None) -> tuple[int, ...]:
    """Percentages as parts per million."""
    try:
        return tuple([round(float(word) * 10_000) for word in text.split(",")]) if text else ()
    except ValueError as wrong:
        raise BadInput(f"--rates must be a percentage per node, such as 0,0,50, not {text!r}") from wrong


def check_command(
    protocol: shared.Protocol,
    nodes: args.Nodes = DEFAULT.nodes,
    k: args.K = DEFAULT.k,
    requests: args.Requests = DEFAULT.requests,
    again: args.Again = DEFAULT.again,
    cancels: args.Cancels = DEFAULT.cancels,
    options: shared.Options = None,
    network: args.Network = DEFAULT.network,
    losses: args.Losses = None,
    dups: args.Dups = None,
    crashes: args.Crashes = DEFAULT.crashes,
    resets: args.Resets = DEFAULT.resets,
    census: args.Census = DEFAULT.census,
    backups: args.Backups = DEFAULT.backups,
    joins: args.Joins = DEFAULT.joins,
    exclusions: args.Exclusions = DEFAULT.exclusions,
    ticks: args.Ticks = DEFAULT.ticks,
    skew: args.Skew = DEFAULT.skew,
    rates: args.Rates = None,
    depth: args.Depth = None,
    workers: args.Workers = 1,
    symmetry: args.Symmetry = False,
    as_json: shared.Json = False,
    journal: args.Journal = None,
    scenario: args.Scenario = None,
    mutants: args.Mutants = False,
) -> int:
    r"""Check a protocol exhaustively: explore every state a few nodes can reach.

    All orders of messages, requests, exits and faults are tried. If a property
    can be violated, the shortest run that violates it is printed, and the exit
    status is 1.

    [bold]Small case[/bold]: takes a fraction of a second

        fairgate check fair_k --nodes 3 --k 2 --requests 2

    [bold]Larger cases[/bold]: more nodes or requests mean millions of states

        fairgate check fair_k --nodes 5 --k 2 --workers 2

        fairgate check fair_k --nodes 5 --k 2 --symmetry

        fairgate check fair_k --nodes 4 --requests 2 --depth 20

    [bold]Crashes[/bold]: raymond_fd survives a crash, the literal text of its paper
    does not

        fairgate check raymond_fd --nodes 3 --crashes 1

        fairgate check raymond_fd_literal --nodes 2 --crashes 1

    [bold]Live gates[/bold]: with a census under each view, any protocol goes on after
    crashes and joins

        fairgate check naimi_trehel --nodes 3 --census --crashes 1

        fairgate check naimi_trehel --nodes 3 --census --joins 1

        fairgate check naimi_trehel --nodes 2 --census --exclusions 1

    [bold]Backups[/bold]: the next node of a ring takes over after a crash; unsafe if
    messages leave before the copies have arrived

        fairgate check fair_k --nodes 2 --backups 1 --crashes 1 --ticks 4 \
            --network fifo

        fairgate check fair_k --nodes 2 --backups 1 --crashes 1 --ticks 4 \
            --option hold=false

    [bold]Clocks[/bold]: a lease is safe while the clocks agree, and unsafe if they
    drift apart further than the protocol allows for

        fairgate check leased --nodes 2 --option lease=3s --ticks 5

        fairgate check leased --nodes 2 --option lease=3s --ticks 5 --skew 1

        fairgate check leased --nodes 2 --option lease=3s --ticks 5 --rates 50,0

    [bold]Mutation testing[/bold]: which statements could be deleted unnoticed?

        fairgate check naimi_trehel --mutants

    [bold]Lossy network[/bold]: keep the steps that lead to the violation, and draw them

        fairgate check fair_k --network lossy --journal lost.ndjson

        fairgate replay lost.ndjson
    """
    found = find_protocol(protocol)
    if mutants:
        from fairgate.cli.check.mutants import mutants_command  # noqa: PLC0415 (imports most of the checker)

        return mutants_command(found, as_json)
    if (ticks or skew or rates) and not found.timed and backups is None:
        raise BadInput(
            f"--ticks, --skew and --rates are only for protocols that use the clock; {found.about.name} does not"
        )
    case = Case(
        protocol=found.about.name,
        nodes=nodes,
        k=k,
        requests=requests,
        network=network,
        losses=budget("--losses", losses, network == "lossy", "lossy"),
        dups=budget("--dups", dups, network == "dup", "dup"),
        again=again,
        cancels=cancels,
        crashes=crashes,
        resets=resets,
        census=census,
        backups=backups,
        joins=joins,
        exclusions=exclusions,
        ticks=ticks,
        skew=skew,
        rates=read_rates(rates),
        options=read_options(options or (), found, () if backups is None else ("homes",)),
    )
    if depth is not None and depth < 1:
        raise BadInput(f"--depth must be at least 1, not {depth}")
    if workers < 1:
        raise BadInput(f"--workers must be at least 1, not {workers}")
    for file in (journal, scenario):
        check_place(file)
    explorer = Explorer(case, make_model(case, symmetry), workers)
    with exploring(case.protocol) as told:
        report = explorer.run(depth, told)
    way = Counterexample(explorer.model, report.violations[0]) if report.violations else None
    if as_json:
        print(json.dumps(report.as_json() | {"counterexample": way.commands() if way else []}))
    else:
        show(report, way)
    if way:
        written = write("journal", journal, way.write_journal) + write("scenario", scenario, way.write_scenario)
        if not as_json:
            print("".join(f"{line}\n" for line in written), end="")
    return exit_code(report)


def budget(name: str, given: int | None, used: bool, network: str) -> int:
    """The value of --losses or --dups, 1 by default. Raises BadInput if it was given for another network."""
    if given is not None and not used:
        raise BadInput(f"{name} needs --network {network}")
    return 1 if given is None else given


def check_place(file: str | None) -> None:
    """Raises BadInput if `file` cannot be written. Called before the search, which may take long."""
    if file is not None and (Path(file).is_dir() or not Path(file).absolute().parent.is_dir()):
        raise BadInput(f"cannot write {file}: its directory does not exist, or it is a directory itself")


def make_model(case: Case, symmetry: bool) -> Model:
    """The model to explore. Raises BadInput for options that the protocol rejects."""
    if case.census and symmetry:
        raise BadInput(
            "--symmetry cannot be combined with --census: the first node of a view leads it, so nodes are not alike"
        )
    if case.backups is not None and symmetry:
        raise BadInput("--symmetry cannot be combined with --backups: places on a ring are not alike")
    try:
        if case.backups is not None:
            return HomesModel(case)
        return CensusModel(case) if case.census else Model(case, symmetry=symmetry)
    except ValueError as wrong:
        raise BadInput(str(wrong)) from wrong
    except Exception as wrong:
        add_place(wrong, find_protocol(case.protocol), "creating node 0")
        explain_error(wrong)
        raise


def show(report: CheckReport, way: Counterexample | None) -> None:
    console = stdout()
    console.print(report_table(report), "", verdict_of(report), sep="\n")
    if way is None:
        return
    steps = len(way.violation.path)
    said = f"Shortest run to this violation, {steps} {'step' if steps == 1 else 'steps'}"
    if way.violation.cycle:
        said = f"{said}, of which the last {way.violation.cycle} can repeat forever"
    console.print(f"\n{said}:", markup=False)
    for line in way.picture(line_width(), not can_draw()):
        print(line)


def write(what: str, file: str | None, writer: Callable[[str], None]) -> list[str]:
    """Write the file, if one was asked for, and return the lines to print about it."""
    if file is None:
        return []
    try:
        writer(file)
    except OSError as wrong:
        raise BadInput(f"cannot write the {what} {file}: {wrong.strerror}") from wrong
    return [f"{what} written to {file}"]


def exit_code(report: CheckReport) -> int:
    if report.interrupted:
        return 130
    return 1 if report.violations else 0
