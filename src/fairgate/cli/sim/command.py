"""`fairgate sim`: simulate a protocol and report its waits, fairness, messages and violations."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

from fairgate.cli import options as shared
from fairgate.cli.risk import weak_votes
from fairgate.cli.screen import progress_bar, stdout, warn
from fairgate.cli.sim import options as args
from fairgate.cli.sim.view import result_table, trials_table, verdict
from fairgate.cli.values import finite, read_give_up, read_options
from fairgate.core.kbr import Routed
from fairgate.core.mutex import Mutex
from fairgate.core.outbox import Outbox
from fairgate.core.setup import Setup
from fairgate.errors import BadInput, FairgateError
from fairgate.processes import processors
from fairgate.registry import find_protocol, make_node
from fairgate.sim.as_paper import as_paper
from fairgate.sim.config import Config, backup_stack, check, default_k
from fairgate.sim.faults import parse_faults
from fairgate.sim.run import simulate
from fairgate.sim.step_errors import add_place, place_noted
from fairgate.sim.summary import Result
from fairgate.sim.tables import check_file, loads_of, usage_of, waits_of, write_table
from fairgate.sim.trials import combine, run_trials

LONGEST = 1e9  # simulated seconds, a quarter of what the clock can count; this is an estimate, made before the run
ALWAYS = ("entries", "events", "wait_mean", "wait_max", "spread", "messages_per_entry", "max_inside", "overtakes")
DEFAULT = Config()
SIMULATED = {  # --overlay -> layer
    "full": "full",
    "chord": "settled_chord",
    "pastry": "settled_pastry",
    "living-chord": "chord",
    "living-pastry": "pastry",
}
RINGS = {None: "full", "full": "full", "watched": "watched", "chord": "settled_chord", "living-chord": "chord"}

LIVING = {"chord", "pastry"}
MOST_LOSS = 0.05  # the largest share of lost messages with which DHT protocols are tested on living rings


def sim_command(
    protocol: shared.Protocol,
    nodes: args.Nodes = DEFAULT.nodes,
    k: args.K = None,
    options: shared.Options = None,
    channel: args.Channel = False,
    backups: args.Backups = None,
    no_census: args.NoCensus = False,
    workload: args.Workload = DEFAULT.workload,
    rate: args.Rate = DEFAULT.rate,
    cs: args.Cs = DEFAULT.cs,
    exponential_cs: args.ExponentialCs = False,
    requests: args.Requests = DEFAULT.requests,
    warmup: args.Warmup = DEFAULT.warmup,
    askers: args.Askers = None,
    give_up: args.GiveUp = None,
    seconds: args.Seconds = DEFAULT.seconds,
    warmup_seconds: args.WarmupSeconds = DEFAULT.warmup_seconds,
    rounds: args.Rounds = DEFAULT.rounds,
    round_seconds: args.RoundSeconds = DEFAULT.round_seconds,
    per_resource: args.PerResource = False,
    requesters: args.Requesters = DEFAULT.requesters,
    churn: args.Churn = DEFAULT.churn,
    paper: args.AsPaper = False,
    resources: args.Resources = DEFAULT.resources,
    replicas: args.Replicas = None,
    quorum: args.Quorum = None,
    responses: args.Responses = None,
    overlay: args.OverlayName = None,
    outsiders: args.Outsiders = DEFAULT.outsiders,
    replica_life: args.ReplicaLife = DEFAULT.replica_life,
    latency: args.Latency = DEFAULT.latency,
    faults: args.Faults = "",
    seed: args.Seed = DEFAULT.seed,
    trials: args.Trials = 1,
    workers: args.Workers = None,
    no_check: args.NoCheck = False,
    marks: args.Marks = False,
    waits: args.Waits = None,
    usage: args.Usage = None,
    loads: args.Loads = None,
    journal: args.Journal = None,
    as_json: shared.Json = False,
) -> int:
    r"""Simulate a protocol and report waits, fairness, messages and violations.

    All times are in seconds of simulated time. The exit status is 1 if a
    property was violated.

    [bold]Saturated gate[/bold]: every node always wants to enter, so each waits
    N/k x (cs + latency) - cs = 357 seconds

        fairgate sim fair_k --nodes 100 --k 3 --rate 100 --cs 10 --warmup 20

    [bold]Fair and unfair protocols[/bold]: under the same load, compare the spread,
    which is the longest wait minus the mean

        fairgate sim fair_k --rate 0.5

        fairgate sim bv95 --rate 0.5

    [bold]Crashes[/bold]: raymond_fd goes on without the crashed nodes, raymond waits
    for them forever

        fairgate sim raymond_fd --nodes 20 --faults 'crash:*3@100+50'

        fairgate sim raymond --nodes 20 --faults 'crash:*3@100+50'

    [bold]Backups[/bold]: a fifth of the nodes crash at once, and their successors on
    a ring take over

        fairgate sim fair_k --backups 4 --faults 'crash:20%@600' --requests 5

    [bold]Lossy network[/bold], with a reliable channel that makes up for the losses

        fairgate sim fair_k --nodes 20 --faults loss:0.05,dup:0.02 --channel

    [bold]Wide area network[/bold], ten runs in parallel, with JSON output

        fairgate sim fair_k --latency wan --trials 10 --json

    [bold]DHT[/bold]: Sigma beyond its saturation, and ten gates over Pastry

        fairgate sim sigma --nodes 1000 --replicas 32 --quorum 24 \
            --workload open --rate 8 --cs 0 --latency uniform:0,0.2 \
            --seconds 60 --warmup-seconds 20

        fairgate sim e2e --nodes 1000 --resources 10 --replicas 10 \
            --overlay pastry --latency 0.1 --workload rounds --rounds 20 \
            --requests 20 --per-resource

    [bold]Living overlay[/bold]: 40 nodes join one by one, then two of them crash
    while all others go on making requests

        fairgate sim sigma --nodes 40 --overlay living-chord --requests 5 \
            --cs 1 --latency 0.1 --faults 'crash:*2@20+30'
    """
    found = find_protocol(protocol)
    asked_for = {"replicas": replicas, "quorum": quorum, "responses": responses}
    check_dht(found, {**asked_for, "resources": resources if resources != 1 else None})
    if backups is not None:
        stack = backup_stack(ring_layer(overlay), census=not no_census)
        asked_for["backups"] = backups
    else:
        check_dht(found, {"overlay": overlay})
        stack = (*overlay_layer(overlay), *(("channel",) if channel else ()))
    if no_census and backups is None:
        raise BadInput("--no-census needs --backups")
    share, patience = read_give_up(give_up) if give_up is not None else (DEFAULT.give_up, DEFAULT.give_up_after)
    if askers is not None and workload != "rounds":
        raise BadInput("--askers needs --workload rounds")
    config = Config(
        protocol=found.about.name,
        nodes=nodes,
        k=k if k is not None else default_k(found, nodes),
        rate=finite("--rate", rate),
        cs=finite("--cs", cs),
        latency=latency,
        requests=requests,
        seed=seed,
        warmup=warmup,
        faults=faults,
        workload=workload,
        askers=askers if askers is not None else max(1, min(DEFAULT.askers, nodes)),
        exponential_cs=exponential_cs,
        give_up=share,
        give_up_after=patience,
        stack=stack,
        options=read_options(options or (), found, stack)
        | {name: value for name, value in asked_for.items() if value is not None},
        check=not no_check,
        marks=marks,
        waits=waits is not None,
        usage=usage is not None,
        seconds=finite("--seconds", seconds),
        warmup_seconds=finite("--warmup-seconds", warmup_seconds),
        rounds=rounds,
        round_seconds=finite("--round-seconds", round_seconds),
        per_resource=per_resource,
        requesters=requesters,
        churn=churn,
        resources=resources,
        outsiders=outsiders,
        replica_life=finite("--replica-life", replica_life),
    )
    if paper:
        config = as_paper(config)
    check_trials(trials, workers, journal)
    check_config(config, found)
    tables = ((waits, waits_of), (usage, usage_of), (loads, loads_of))
    files = [(path, table) for path, table in tables if path is not None]
    for path, _ in files:
        check_file(path)
    for note in fault_notes(config, found):
        warn(note)
    if trials > 1:
        results, code = many(config, trials, workers or processors(), as_json)
    else:
        results, code = one(config, journal, workers or processors(), as_json)
    for path, table in files if results else ():  # after an early Ctrl-C there may be none
        write_table(path, table(results))
    return code


def ring_layer(name: str | None) -> str:
    """The overlay below backups."""
    if name not in RINGS:
        raise BadInput(f"--overlay must be {', '.join(filter(None, RINGS))} with --backups, not {name!r}")
    return RINGS[name]


def overlay_layer(name: str | None) -> tuple[str, ...]:
    if name is None:
        return ()
    if name not in SIMULATED:
        raise BadInput(f"--overlay must be {', '.join(list(SIMULATED)[:-1])} or {list(SIMULATED)[-1]}, not {name!r}")
    return (SIMULATED[name],)


def check_dht(protocol: type[Mutex], asked_for: dict[str, Any]) -> None:
    """Raises BadInput if an option for DHTs was given and the protocol does not run on one, or not with this value."""
    given = [name for name, value in asked_for.items() if value is not None]
    if given and not issubclass(protocol, Routed):
        raise BadInput(f"--{given[0]} is only for protocols on a DHT, such as sigma; {protocol.about.name} is not one")
    kinds = protocol.about.options.get("responses", ())
    if "responses" in given and not kinds:
        raise BadInput(f"--responses is only for sigma and strawman; {protocol.about.name} always answers directly")
    if "responses" in given and asked_for["responses"] not in kinds:
        raise BadInput(f"--responses must be {' or '.join(kinds)}, not {asked_for['responses']!r}")


def check_trials(trials: int, workers: int | None, journal: str | None) -> None:
    if trials < 1:
        raise BadInput(f"--trials must be at least 1, not {trials}")
    if workers is not None and workers < 1:
        raise BadInput(f"--workers must be at least 1, not {workers}")
    if trials > 1 and journal is not None:
        raise BadInput("--journal records a single run: leave out --trials, and choose the run by --seed")


def check_config(config: Config, protocol: type[Mutex]) -> None:
    """Raises BadInput for what can be found before the run. One node is made, because only its constructor can check
    the values of protocol options."""
    check(config, protocol)
    turn = (config.cs + longest_hop(config.latency)) / config.k
    if config.total * turn + config.requests / config.rate > LONGEST:
        raise BadInput("the run would last more than 30 years of simulated time: use fewer --requests or shorter times")
    try:
        make_node(config.protocol, config.stack)(
            0, Setup(tuple(range(config.nodes)), config.k, options=config.options), Outbox()
        )
    except ValueError as wrong:
        raise BadInput(str(wrong)) from wrong
    except Exception as wrong:
        add_place(wrong, protocol, "creating node 0")
        explain_error(wrong)
        raise


def longest_hop(latency: str) -> float:
    """Seconds, for a constant or uniform latency; 0 for the others, which are never long."""
    try:
        return float(latency.removeprefix("pairs:").removeprefix("uniform:").rpartition(",")[2])
    except ValueError:
        return 0.0


def fault_notes(config: Config, protocol: type[Mutex]) -> list[str]:
    """One warning for each kind of fault that the protocol does not survive."""
    name, survives = config.protocol, protocol.about.survives
    carried = ("loss", "duplication") if "channel" in config.stack else ()
    if "homes" in config.stack:  # copies and their acknowledgements travel below the channel
        carried = ("crash", "reset")
    leased = bool(config.options.get("lease"))
    faults = parse_faults(config.faults, config.nodes)
    kinds = faults.kinds()
    notes = []
    if faults.loss > MOST_LOSS and LIVING & {*config.stack} and "channel" not in config.stack:
        notes.append(
            f"nodes of a living ring that loses {faults.loss:.0%} of its messages take each other for dead, and two may"
            f" serve one key: {name} may let two in above {MOST_LOSS:.0%}; add --channel, or use a settled overlay"
        )
    for kind in kinds:
        limited = [words for words in survives if words.startswith(f"{kind} of")]
        if kind in survives or kind in carried or (leased and f"{kind} with leases" in survives):
            continue
        if limited and issubclass(protocol, Routed):
            continue  # how many replicas that is depends on the votes: see below
        if f"{kind} with leases" in survives:
            notes.append(
                f"{name} survives {kind} faults only with leases: add --option lease=10s, or expect the run to stop"
            )
        elif limited:
            notes.append(f"{name} survives {limited[0]}, but no other {kind}")
        elif kind in {"loss", "duplication"}:
            outcome = "stop" if kind == "loss" else "go wrong"
            notes.append(f"{name} does not survive {kind} faults: add --channel, or expect the run to {outcome}")
        else:
            notes.append(f"{name} does not survive {kind} faults: expect the run to stop")
    counted = "responses" in protocol.about.options and not getattr(protocol, "zoned", False)
    if counted and ("reset" in kinds or config.replica_life):
        notes += weak_votes(config)
    return notes


def one(config: Config, journal: str | None, workers: int, as_json: bool) -> tuple[list[Result], int]:
    with progress_bar(f"{config.protocol}, entries", config.total) as done, errors_explained(config, journal):
        result = simulate(config, done, journal, workers)
    if as_json:
        print(json.dumps(result.as_json()))
    else:
        stdout().print(result_table(result), "", verdict([result], config), sep="\n")
    return [result], exit_code([result], result.interrupted)


def many(config: Config, trials: int, workers: int, as_json: bool) -> tuple[list[Result], int]:
    numbers = count(1)
    with progress_bar(f"{config.protocol}, trials", trials) as done, errors_explained(config, None):
        results = run_trials(config, trials, workers, lambda _: done(next(numbers)))
    interrupted = len(results) < trials
    combined = combine(results) if results else nothing(config)
    combined["interrupted"] = interrupted
    if as_json:
        print(json.dumps(combined))
    elif results:
        stdout().print(trials_table(results, combined), "", verdict(results, config, interrupted), sep="\n")
    else:
        warn("interrupted before the first trial ended")
    return results, exit_code(results, interrupted)


@contextmanager
def errors_explained(config: Config, journal: str | None) -> Iterator[None]:
    """Turns errors that only the run itself can detect in its input into BadInput, and those of a protocol into one
    line."""
    try:
        yield
    except OverflowError as wrong:
        raise BadInput("a time is too large: the clock of a run ends after 292 years") from wrong
    except OSError as wrong:
        if journal is None or isinstance(wrong, BrokenPipeError):
            raise
        raise BadInput(f"cannot write the journal {journal}: {wrong.strerror}") from wrong
    except Exception as wrong:
        explain_error(wrong, f": try `fairgate check {config.protocol}`, which shows the shortest run to an error")
        raise


def explain_error(wrong: Exception, hint: str = "") -> None:
    """Raise a FairgateError of one line if the exception came from a protocol. Return for any other exception."""
    place = place_noted(wrong)
    if place and not isinstance(wrong, FairgateError):
        what = " ".join(f"{type(wrong).__name__}: {wrong}".split()).removesuffix(":")
        raise FairgateError(f"{what} ({place}){hint}") from wrong


def nothing(config: Config) -> dict[str, Any]:
    """The JSON object for a run that was interrupted before its first trial ended."""
    known = {"protocol": config.protocol, "nodes": config.nodes, "k": config.k, "seed": config.seed}
    return known | dict.fromkeys(ALWAYS) | {"violations": 0, "seconds": 0.0, "trials": []}


def exit_code(results: list[Result], interrupted: bool) -> int:
    if interrupted:
        return 130
    return 1 if any(result.violations for result in results) else 0
