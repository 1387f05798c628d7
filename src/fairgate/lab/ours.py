"""Experiments of our own: all protocols side by side, by cost, by fairness, and while nodes crash."""

from statistics import fmean
from typing import Any

from fairgate.lab.experiment import Bench, Claim, Outcome, experiment, mean, select, verdict
from fairgate.lab.plot import Picture, Series, series_by
from fairgate.lab.sweeps import SHARES, Row
from fairgate.sim.config import Config, backup_stack

FEW = ("one_line", "fair_k", "bv95", "naimi_trehel", "raymond_tree", "centralised")  # messages: log N or fewer
HUGE = ("one_line", "fair_k", "naimi_trehel")  # of these, the ones whose runs with 100,000 nodes take seconds
MANY = ("maekawa", "suzuki_kasami", "ricart_agrawala", "raymond")  # messages: at least the root of N
K_PROTOCOLS = ("one_line", "fair_k", "fair_k_bounded", "bv95", "srimani_reddy", "raymond", "centralised")
LEDGER = "one_line.md"


@experiment("X.cost", "Messages per entry against the number of nodes, all protocols", "Our own experiment", quick=1)
def cost(bench: Bench) -> Outcome:
    setting: dict[str, Any] = {"k": 1, "rate": 0.5, "cs": 10.0, "latency": "0.001"}
    small = bench.pick([9, 25], [9, 25, 100], [9, 25, 100, 400])
    large = bench.pick([9, 25, 100], [9, 25, 100, 1_000, 10_000], [9, 25, 100, 1_000, 10_000])
    rows = bench.sweep(*MANY, nodes=small, requests=bench.pick(5, 20, 20), **setting)
    rows += bench.sweep(*FEW, nodes=large, requests=bench.pick(5, 10, 10), **setting)
    if bench.size == "paper":
        rows += bench.sweep(*HUGE, nodes=100_000, requests=3, **setting)
        rows += bench.sweep(HUGE[0], nodes=1_000_000, requests=1, **setting)
    picture = Picture(
        "k = 1, every node asks again and again",
        "nodes",
        "messages per entry",
        series_by(rows, "nodes", "messages_per_entry"),
        log_x=True,
        log_y=True,
    )
    most = {name: mean(select(rows, protocol=name, nodes=large[-1]), "messages_per_entry") for name in FEW}
    first = {name: mean(select(rows, protocol=name, nodes=large[0]), "messages_per_entry") for name in FEW}
    bounded = ("one_line", "centralised")
    claims = [
        Claim(
            "one_line and a server need a number of messages that does not grow with N.",
            "",
            "",
            ", ".join(f"{name} {first[name]:.1f} to {most[name]:.1f}" for name in bounded),
            verdict(all(most[name] < 1.3 * first[name] + 1 for name in bounded)),
            f"Messages per entry from {large[0]} to {large[-1]:,} nodes, while every node waits.",
            LEDGER,
        ),
        Claim(
            "fair_k needs O(log N) messages.",
            "",
            "",
            f"{first['fair_k']:.1f} to {most['fair_k']:.1f}",
            verdict(most["fair_k"] < 2 * first["fair_k"] + large[-1].bit_length()),
            f"From {large[0]} to {large[-1]:,} nodes.",
            "fair_k.md#claims-of-the-paper-and-our-measurements",
        ),
    ]
    return Outcome(rows, [picture], claims)


def jain(values: list[float]) -> float:
    """Jain's index of fairness: 1 if all values are equal, 1/n if one of n has everything."""
    return sum(values) ** 2 / (len(values) * sum(value * value for value in values))


@experiment("X.fair", "Distribution of waits with k = 3, all protocols", "Our own experiment", quick=1)
def fairness(bench: Bench) -> Outcome:
    nodes = bench.pick(30, 100, 100)
    rows, pictures = [], []
    for varying, stays in ((False, "equal stays"), (True, "exponential stays")):
        found = bench.sweep(
            *K_PROTOCOLS,
            nodes=nodes,
            k=3,
            exponential_cs=varying,
            warmup=5,
            waits=True,
            requests=bench.pick(15, 40, 200),
            trials=bench.pick(1, 1, 3),
            series=["wait_shares", "node_maxima"],
        )
        found = [
            row
            | {
                "stays": stays,
                "jain": jain(row["node_maxima"]),
                "overtakes_per_entry": row["overtakes"] / row["entries"],
            }
            for row in found
        ]
        drawn: dict[str, Series] = {name: distribution(select(found, protocol=name)) for name in K_PROTOCOLS}
        pictures.append(Picture(f"{stays}, mean 10 s", "wait, s", "share of the waits", drawn, log_x=True, steps=True))
        rows += found
    return Outcome(rows, pictures, fairness_claims(rows))


def distribution(rows: list[Row]) -> Series:
    """Of the waits of several runs: the mean of their quantiles."""
    columns = zip(*(row["wait_shares"] for row in rows), strict=True)
    return [(max(fmean(values), 0.1), step / SHARES, 0.0) for step, values in enumerate(columns)]


def fairness_claims(rows: list[Row]) -> list[Claim]:
    def value(name: str, stays: str, measure: str) -> float:
        return mean(select(rows, protocol=name, stays=stays), measure)

    equal, varying = "equal stays", "exponential stays"
    return [
        Claim(
            "one_line stays even if stays vary, and fair_k does not.",
            "",
            "",
            f"spread {value('one_line', varying, 'spread'):.0f} s and {value('fair_k', varying, 'spread'):.0f} s",
            verdict(value("one_line", varying, "spread") < value("fair_k", varying, "spread")),
            "Longest wait less mean wait with exponential stays. The k queues of fair_k drift apart.",
            LEDGER,
        ),
        Claim(
            "bv95 is the least fair.",
            "",
            "",
            f"{value('bv95', equal, 'overtakes_per_entry'):.1f} overtakes per entry, fair_k"
            f" {value('fair_k', equal, 'overtakes_per_entry'):.1f}; Jain index of the nodes' longest waits"
            f" {value('bv95', equal, 'jain'):.3f} and {value('fair_k', equal, 'jain'):.3f}",
            verdict(value("bv95", equal, "overtakes_per_entry") > value("fair_k", equal, "overtakes_per_entry")),
            "With equal stays.",
            "bv95.md",
        ),
    ]


CRASHING: dict[str, tuple[str, tuple[str, ...]]] = {
    "fair_k": ("fair_k", ()),
    "fair_k with backups and census": ("fair_k", backup_stack()),
    "one_line with backups and census": ("one_line", backup_stack()),
    "raymond": ("raymond", ()),
    "raymond_fd": ("raymond_fd", ()),
}


@experiment("X.crash", "Units in use while nodes crash", "Our own experiment", quick=1, paper=4)
def crashes(bench: Bench) -> Outcome:
    nodes, k, every = bench.pick((8, 2, 200), (15, 3, 300), (15, 3, 300))
    times = [every * number for number in range(1, nodes - 1)]
    faults = ",".join(f"crash:{node}@{when}" for node, when in enumerate(times)) + ",detect:2"
    rows = []
    for line, (protocol, stack) in CRASHING.items():
        config = Config(
            protocol,
            nodes=nodes,
            k=k,
            rate=1.0,
            cs=10.0,
            latency="0.1",
            requests=bench.pick(100, 200, 600),
            usage=True,
            faults=faults,
            stack=stack,
        )
        rows += [row | {"line": line} for row in bench.run(bench.seeds(config, bench.pick(1, 1, 3)), ["usage"])]
    ends = [0, *times, times[-1] + every]
    drawn: dict[str, Series] = {
        line: [
            (float(number), fmean(units(row, ends[number], ends[number + 1]) for row in select(rows, line=line)), 0.0)
            for number in range(len(ends) - 1)
        ]
        for line in CRASHING
    }
    picture = Picture(f"{nodes} nodes, k = {k}", "nodes that have crashed", "units in use, on average", drawn)
    last = {line: points[-1][1] for line, points in drawn.items()}
    surviving = [line for line in CRASHING if line not in ("fair_k", "raymond")]
    claim = Claim(
        "With backups or failure detectors a gate goes on until few nodes are left.",
        "",
        "",
        ", ".join(f"{line}: {value:.1f}" for line, value in last.items()),
        verdict(all(last[line] > 0.5 for line in surviving) and last["raymond"] < 0.1),
        f"Units in use after {len(times)} of {nodes} nodes have crashed.",
        "fair_k_backups.md",
    )
    return Outcome(rows, [picture], [claim])


def units(row: Row, start: float, end: float) -> float:
    """The number inside between two times, on average."""
    total, since, level = 0.0, start, 0
    for when, inside in row["usage"]:
        if when >= end:
            break
        if when > start:
            total += level * (when - since)
            since = when
        level = inside
    return (total + level * (end - since)) / (end - start)
