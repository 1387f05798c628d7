"""The figures of EE: *Efficient Mutual Exclusion in Peer-to-Peer Systems*, section VI.

Rounds of requests on a settled Pastry ring, one resource per 100 nodes. A message counts once per hop. EE does not say
how Sigma's responses travel. Its ratios come out only if they are routed hop by hop; sent directly they cost less, so
both are shown. `fairgate sim PROTOCOL --as-paper` makes one such run.
"""

from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

from fairgate.lab.experiment import FAILS, PARTLY, Bench, Claim, Outcome, experiment, verdict
from fairgate.lab.plot import Picture, series_by, shares
from fairgate.lab.statistics import column, estimate, mean, select
from fairgate.lab.sweeps import Row
from fairgate.protocols.sigma.protocol import RETRY
from fairgate.protocols.sigma.replica import LEASE
from fairgate.sim.as_paper import REQUESTERS, as_paper
from fairgate.sim.config import Config

ROUTED, DIRECT, E2E, NON_E2E = "Sigma, responses routed", "Sigma, responses direct", "End-to-End", "Non-End-to-End"
PROTOCOLS: dict[str, tuple[str, dict[str, Any]]] = {
    ROUTED: ("sigma", {}),
    DIRECT: ("sigma", {"responses": "direct"}),
    E2E: ("e2e", {}),
    NON_E2E: ("non_e2e", {}),
}
LEDGER = "e2e.md#the-evaluation-section-vi"


def runs(
    bench: Bench, name: str, base: Config, trials: int, series: Sequence[str] = (), in_all: bool = False
) -> list[Row]:
    """`in_all`: a round's requests are for all resources together, not for each."""
    protocol, options = PROTOCOLS[name]
    config = as_paper(replace(base, protocol=protocol, k=1, options={**options, **base.options}))
    if in_all:
        config = replace(config, per_resource=False)
    return [row | {"line": name} for row in bench.run(bench.seeds(config, trials), series)]


def ratio(rows: list[Row], name: str, base: str = ROUTED) -> list[float]:
    """By how much fewer hops than Sigma, run by run."""
    return ratio_of(select(rows, line=base), select(rows, line=name))


def ratio_of(more: list[Row], less: list[Row]) -> list[float]:
    return [most / few for most, few in zip(column(more, "hops"), column(less, "hops"), strict=True)]


@experiment(
    "EE.3a", "Messages against the number of nodes", "EE section VI.A, figure 3a", quick=2, paper=75, estimated=True
)
def growth(bench: Bench) -> Outcome:
    sizes = bench.pick([200, 400], [500, 1_000, 2_000], [1_000, 2_000, 3_000, 4_000, 5_000, 6_500])
    trials = bench.pick(1, 2, 10)
    rows = [
        row
        for nodes in sizes
        for name in PROTOCOLS
        for row in runs(bench, name, Config(nodes=nodes, rounds=bench.pick(8, 20, 20), workload="rounds"), trials)
    ]
    picture = Picture("", "nodes", "messages, counted per hop", series_by(rows, "nodes", "hops", ("line",)))
    last = select(rows, nodes=sizes[-1])
    largest = Config(nodes=sizes[-1], rounds=bench.pick(8, 20, 20), workload="rounds")
    fewer = [row for name in PROTOCOLS for row in runs(bench, name, largest, trials, in_all=True)]
    found = {name: ratio(last, name) for name in (E2E, NON_E2E)}
    growing = {name: ratio_of(select(last, line=name), select(rows, line=name, nodes=sizes[0])) for name in PROTOCOLS}
    linear = sizes[-1] / sizes[0]
    claims = [
        Claim(
            "The two protocols require 1.5 to 2.5 times fewer messages than Sigma.",
            "VI.A, figure 3a",
            "1.5 to 2.5",
            f"End-to-End {estimate(found[E2E], '', 2)}, Non-End-to-End {estimate(found[NON_E2E], '', 2)}",
            PARTLY if all(1.4 <= value <= 2.6 for values in found.values() for value in values) else FAILS,
            f"If Sigma's responses are routed and a round's 20 requests are for each resource, at {sizes[-1]:,} nodes."
            f" If responses are sent directly: {both(last, DIRECT)}. If a round has 20 requests in all: {both(fewer)};"
            f" if responses are sent directly as well: {both(fewer, DIRECT)}.",
            LEDGER,
        ),
        Claim(
            "Messages grow linearly with the number of nodes.",
            "VI.A, figure 3a",
            "linear",
            f"for {linear:.2f} times as many nodes: "
            + "; ".join(f"{name} {estimate(values, '', 2)} times" for name, values in growing.items()),
            PARTLY if all(0.8 * linear < fmean(values) < 1.6 * linear for values in growing.values()) else FAILS,
            "If there is one resource per 100 nodes, and requests are counted per resource. Paths grow with log N.",
            LEDGER,
        ),
    ]
    return Outcome(rows + fewer, [picture], claims)


def both(rows: list[Row], base: str = ROUTED) -> str:
    return " and ".join(estimate(ratio(rows, name, base), "", 2) for name in (E2E, NON_E2E))


@experiment(
    "EE.3b", "Messages against the number of requests per round", "EE section VI.A, figure 3b", quick=1, paper=57
)
def contention(bench: Bench) -> Outcome:
    asked = bench.pick([10, 40], [10, 40, 100], [10, 20, 40, 60, 80, 100])
    nodes, trials = bench.pick(200, 1_000, 6_500), bench.pick(1, 1, 3)
    rows = [
        row | {"asked": requests}
        for requests in asked
        for name in PROTOCOLS
        for row in runs(
            bench, name, Config(nodes=nodes, requests=requests, rounds=bench.pick(8, 20, 20), workload="rounds"), trials
        )
    ]
    picture = Picture(
        "", "requests per round and resource", "messages, counted per hop", series_by(rows, "asked", "hops", ("line",))
    )
    last = select(rows, asked=asked[-1])
    found = {name: ratio(last, name) for name in (E2E, NON_E2E)}
    claim = Claim(
        "Under heavier contention both protocols need fewer messages than Sigma.",
        "VI.A, figure 3b",
        "fewer",
        f"End-to-End {estimate(found[E2E], '', 2)}, Non-End-to-End {estimate(found[NON_E2E], '', 2)} times fewer",
        PARTLY if all(value > 1 for values in found.values() for value in values) else FAILS,
        f"At {asked[-1]} requests per round and resource, with {nodes:,} nodes, if Sigma's responses are routed.",
        LEDGER,
    )
    return Outcome(rows, [picture], [claim])


def load_runs(bench: Bench, name: str) -> list[Row]:
    """Both numbers of replicas of EE's table 2."""
    nodes, few, many = bench.pick((200, 5, 20), (1_000, 10, 40), (1_000, 10, 40))
    return [
        row
        for replicas in (few, many)
        for row in runs(
            bench,
            name,
            Config(nodes=nodes, options={"replicas": replicas}, rounds=bench.pick(8, 20, 20), workload="rounds"),
            bench.pick(1, 2, 10),
            ["loads"],
        )
    ]


def load_picture(rows: list[Row]) -> Picture:
    drawn = {}
    for replicas in sorted({row["option.replicas"] for row in rows}):
        found = select(rows, **{"option.replicas": replicas})
        drawn[f"{replicas} replicas"] = shares([float(load) for row in found for load in row["loads"]])
    return Picture(
        "", "messages that a node receives in the whole run", "share of nodes (cumulative)", drawn, steps=True
    )


def by_replicas(rows: list[Row]) -> tuple[list[Row], list[Row]]:
    few, many = sorted({row["option.replicas"] for row in rows})
    return select(rows, **{"option.replicas": few}), select(rows, **{"option.replicas": many})


def loads_of(rows: list[Row]) -> str:
    half, most, busiest = (estimate(column(rows, name), "", 0) for name in ("load.p50", "load.p90", "load_max"))
    return f"half of the nodes: up to {half}; 90 %: up to {most}; the busiest: {busiest}"


def raised(rows: list[Row]) -> str:
    fewer, more = (estimate(column(each, "load_mean")) for each in by_replicas(rows))
    return f"mean load {fewer}, with four times the replicas {more}"


def raising_claim(rows: list[Row], figure: str) -> Claim:
    few, many = by_replicas(rows)
    return Claim(
        "More replicas raise the load of each node.",
        f"VI.B, figure {figure}",
        "higher",
        raised(rows),
        verdict(mean(many, "load_mean") > 1.5 * mean(few, "load_mean")),
        "Messages received per node in the whole run.",
        LEDGER,
    )


@experiment("EE.4a", "Load of the nodes with End-to-End", "EE section VI.B, figure 4a", quick=1, paper=3)
def load_e2e(bench: Bench) -> Outcome:
    rows = load_runs(bench, E2E)
    few, _ = by_replicas(rows)
    claims = [
        Claim(
            "The load of most nodes is 200 messages or less, except for a few outliers.",
            "VI.B, figure 4a",
            "200 per round",
            loads_of(few),
            PARTLY if mean(few, "load.p50") <= 200 and mean(few, "load_max") > 2 * mean(few, "load.p90") else FAILS,
            "In the whole run of 20 rounds, not per round. The outliers are owners, which hold the"
            " whole queue of a gate.",
            LEDGER,
        ),
        raising_claim(rows, "4a"),
    ]
    return Outcome(rows, [load_picture(rows)], claims)


@experiment("EE.4b", "Load of the nodes with Non-End-to-End", "EE section VI.B, figure 4b", quick=1, paper=6)
def load_non_e2e(bench: Bench) -> Outcome:
    rows = load_runs(bench, NON_E2E)
    others = load_runs(bench, E2E)
    few, many = by_replicas(rows)
    claims = [
        Claim(
            "The load of most nodes is below 180 messages, and it is the most even one.",
            "VI.B, figure 4b",
            "180 per round",
            loads_of(few),
            PARTLY
            if mean(few, "load.p50") < 180 and mean(few, "load_max") < mean(by_replicas(others)[0], "load_max")
            else FAILS,
            "In the whole run of 20 rounds, not per round.",
            LEDGER,
        ),
        Claim(
            "More replicas do not have any effect on the load.",
            "VI.B, figure 4b",
            "no effect",
            raised(rows),
            verdict(mean(many, "load_mean") < 1.1 * mean(few, "load_mean")),
            "Every replica has its own paths, along which requests, votes and releases travel.",
            LEDGER,
        ),
    ]
    return Outcome(rows + others, [load_picture(rows)], claims)


@experiment("EE.4c", "Load of the nodes with Sigma", "EE section VI.B, figure 4c", quick=1, paper=6)
def load_sigma(bench: Bench) -> Outcome:
    rows = load_runs(bench, ROUTED)
    few, _ = by_replicas(rows)
    claims = [
        Claim(
            "The load of most nodes is 700 messages or less.",
            "VI.B, figure 4c",
            "700 per round",
            loads_of(few),
            PARTLY if mean(few, "load.p50") <= 700 else FAILS,
            "In the whole run of 20 rounds, not per round, with routed responses.",
            LEDGER,
        ),
        raising_claim(rows, "4c"),
    ]
    return Outcome(rows, [load_picture(rows)], claims)


REPAIRED = "Non-End-to-End with path repair"
CHURNING: dict[str, tuple[str, dict[str, Any]]] = {
    "Sigma, responses direct, with leases": ("sigma", {"responses": "direct", "lease": LEASE, "retry": RETRY}),
    E2E: ("e2e", {}),
    REPAIRED: ("non_e2e_faults", {}),
}


@experiment("EE.5", "Messages under churn", "EE section VI.C, figure 5", quick=2, paper=210, estimated=True)
def churn(bench: Bench) -> Outcome:
    nodes, trials = bench.pick(200, 1_500, 6_500), bench.pick(1, 1, 10)
    rates = bench.pick([0, 10, 20], [0, 24, 48], [0, 50, 100, 150, 200])
    rows = []
    for name, (protocol, options) in CHURNING.items():
        for nodes_moved in rates:
            base = Config(
                protocol,
                nodes=nodes,
                k=1,
                churn=nodes_moved,
                requesters=min(REQUESTERS, nodes // 3),
                workload="rounds",
                rounds=bench.pick(8, 20, 20),
                options=options,
            )
            rows += [row | {"line": name} for row in bench.run(bench.seeds(as_paper(base), trials))]
    still = {name: mean(select(rows, line=name, churn=0), "hops") for name in CHURNING}
    rows = [row | {"change": 100 * (row["hops"] / still[row["line"]] - 1)} for row in rows]
    picture = Picture(
        "", "nodes that join or leave per round", "change of messages, %", series_by(rows, "churn", "change", ("line",))
    )
    most, half = (
        {name: column(select(rows, line=name, churn=rate), "change") for name in CHURNING}
        for rate in (rates[-1], rates[len(rates) // 2])
    )
    claims = [
        Claim(
            "Churn raises the message overhead of both protocols only slightly.",
            "VI.C, figure 5",
            "slightly higher",
            "; ".join(f"{name} {changed(values)}" for name, values in most.items()),
            PARTLY if fmean(most[E2E]) < 10 and fmean(most[REPAIRED]) < 60 else FAILS,
            f"At {rates[-1]} of {nodes:,} nodes per round, compared with no churn. As in the paper, requesters are not"
            f" churned; it does not say how many there are ({min(REQUESTERS, nodes // 3)} here). The upkeep of the ring"
            " is not counted.",
            LEDGER,
        ),
        Claim(
            "The overhead rises at first, and then at a much lower rate.",
            "VI.C, figure 5",
            "flattens",
            f"{REPAIRED}: {changed(half[REPAIRED])} at {rates[len(rates) // 2]} nodes per round,"
            f" {changed(most[REPAIRED])} at {rates[-1]}",
            verdict(fmean(most[REPAIRED]) < 1.5 * fmean(half[REPAIRED])),
            f"Each departed node on a path costs a repair. {E2E}, which does not repair paths: {changed(most[E2E])}.",
            LEDGER,
        ),
    ]
    return Outcome(rows, [picture], claims)


def changed(percent: list[float]) -> str:
    return f"{'+' if fmean(percent) > 0 else ''}{estimate(percent)} %"
