"""Experiments of our own: all protocols side by side, by cost, by fairness, and while nodes crash."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from math import log
from statistics import fmean
from typing import Any

from fairgate.lab import on_a_dht
from fairgate.lab.experiment import Bench, Claim, Outcome, experiment, verdict
from fairgate.lab.plot import Picture, Series, series_by
from fairgate.lab.statistics import column, estimate, estimates, mean_and_margin, select, wait_distribution
from fairgate.lab.sweeps import Row
from fairgate.sim.config import Config, backup_stack

FEW = ("one_line", "fair_k", "bv95", "naimi_trehel", "raymond_tree", "centralised")  # messages: log N or fewer
HUGE = ("one_line", "fair_k", "naimi_trehel")  # of these, the ones whose runs with 100,000 nodes take seconds
MANY = ("maekawa", "suzuki_kasami", "ricart_agrawala", "raymond")  # messages: at least the root of N
K_PROTOCOLS = ("one_line", "fair_k", "fair_k_bounded", "bv95", "srimani_reddy", "raymond", "centralised")
UNFAIR = ("bv95", "srimani_reddy")
LEDGER = "one_line.md"
SHORTEST = 0.1  # seconds: shorter waits are drawn here, since a logarithmic axis has no 0
ROUTES, VOTES = "e2e.md#holes-and-corrections", "sigma.md#figures"  # ledgers of the protocols on a DHT


@experiment(
    "X.cost", "Messages per entry against the number of nodes, all protocols", "Our own experiment", quick=1, paper=55
)
def cost(bench: Bench) -> Outcome:
    setting: dict[str, Any] = {"k": 1, "rate": 0.5, "cs": 10.0, "latency": "0.001"}
    trials = bench.pick(1, 1, 3)
    small = bench.pick([9, 25], [9, 25, 100], [9, 25, 100, 400])
    large = bench.pick([9, 25, 100], [9, 25, 100, 1_000, 10_000], [9, 25, 100, 1_000, 10_000])
    rows = bench.sweep(*MANY, nodes=small, requests=bench.pick(5, 20, 20), trials=trials, **setting)
    rows += bench.sweep(*FEW, nodes=large, requests=bench.pick(5, 10, 10), trials=trials, **setting)
    if bench.size == "paper":
        rows += bench.sweep(*HUGE, nodes=100_000, requests=3, **setting)
        rows += bench.sweep(HUGE[0], nodes=1_000_000, requests=1, **setting)
    picture = Picture(
        "k = 1; every node asks again and again",
        "nodes",
        "messages per entry",
        series_by(rows, "nodes", "messages_per_entry"),
        log_x=True,
        log_y=True,
    )
    bounded = ("one_line", "centralised")
    few, many = large[0], large[-1]
    flat = growth(rows, bounded, "messages_per_entry", few, many)
    slow = growth(rows, ("fair_k",), "messages_per_entry", few, many)
    claims = [
        Claim(
            "one_line and a server need a number of messages that does not grow with N.",
            "",
            "",
            told(flat),
            verdict(all(fmean(last) < 1.3 * fmean(first) + 1 for first, last in flat.values())),
            f"Messages per entry from {few} to {many:,} nodes, while every node waits.",
            LEDGER,
        ),
        Claim(
            "fair_k needs O(log N) messages.",
            "",
            "",
            told(slow),
            verdict(all(fmean(last) < 2 * fmean(first) + many.bit_length() for first, last in slow.values())),
            f"From {few} to {many:,} nodes.",
            "fair_k.md#claims-of-the-paper-and-our-measurements",
        ),
    ]
    routed = on_a_dht.cost_rows(bench)
    hops = Picture(
        "On a DHT, k = 1; every node asks again and again",
        "nodes",
        "messages per entry, counted per hop",
        series_by(routed, "nodes", "hops_per_entry"),
        log_x=True,
        log_y=True,
    )
    notes = [on_a_dht.NOTE]
    if bench.size == "paper":
        notes.append("Each node asks 3 times if there are 100,000 nodes, and once if there are 1,000,000.")
    return Outcome(rows + routed, [picture, hops], claims + hop_claims(routed), notes)


Growth = dict[str, tuple[list[float], list[float]]]  # by protocol: the values with few nodes, and those with many


def growth(rows: list[Row], names: Sequence[str], measure: str, few: int, many: int) -> Growth:
    def values(name: str, nodes: int) -> list[float]:
        return column(select(rows, protocol=name, nodes=nodes), measure)

    return {name: (values(name, few), values(name, many)) for name in names}


def told(found: Growth) -> str:
    return ", ".join(f"{name} {estimate(first)} to {estimate(last)}" for name, (first, last) in found.items())


def hop_claims(rows: list[Row]) -> list[Claim]:
    def fewest_and_most(names: Sequence[str]) -> tuple[int, int]:
        sizes = [row["nodes"] for row in select(rows, protocol=names[0])]
        return min(sizes), max(sizes)

    few, many = fewest_and_most(on_a_dht.SHORT)
    least, most = fewest_and_most(on_a_dht.LINEAR)
    short = growth(rows, on_a_dht.SHORT, "hops_per_entry", few, many)
    linear = growth(rows, on_a_dht.LINEAR, "hops_per_entry", least, most)
    route = max(1.0, log(many, 16))  # hops of a Pastry route with digits of four bits
    return [
        Claim(
            "On a DHT, e2e and non_e2e need O(log N) hops.",
            "",
            "",
            told(short),
            verdict(all(fmean(last) < 1.3 * route * fmean(first) for first, last in short.values())),
            f"From {few} to {many:,} nodes. Routes get longer.",
            ROUTES,
        ),
        Claim(
            "The hops of sigma_zones and the strawman grow in proportion to N.",
            "",
            "",
            told(linear),
            verdict(all(fmean(last) / fmean(first) > 0.5 * most / least for first, last in linear.values())),
            f"From {least} to {most} nodes. In sigma_zones every member votes; in the strawman all clients that wait"
            " ask again and again.",
            VOTES,
        ),
    ]


def jain(values: list[float]) -> float:
    """Jain's index of fairness: 1 if all values are equal, 1/n if one of n has everything."""
    return sum(values) ** 2 / (len(values) * sum(value * value for value in values))


@experiment("X.fair", "Distribution of waits, all protocols", "Our own experiment", quick=1, paper=20, estimated=True)
def fairness(bench: Bench) -> Outcome:
    nodes = bench.pick(30, 100, 100)
    rows: list[Row] = []
    routed: list[Row] = []
    pictures: list[Picture] = []
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
        pictures.append(waits_picture(f"k = 3, {stays}, mean 10 s", found))
        rows += with_fairness(found, stays)
        routed += with_fairness(on_a_dht.wait_rows(bench, varying), stays)
    pictures += [
        waits_picture(f"On a DHT, k = 1, {stays}, mean 10 s", select(routed, stays=stays))
        for stays in ("equal stays", "exponential stays")
    ]
    return Outcome(rows + routed, pictures, [*fairness_claims(rows), overtaking_claim(routed)], [on_a_dht.NOTE])


def with_fairness(rows: list[Row], stays: str) -> list[Row]:
    return [
        row
        | {
            "stays": stays,
            "jain": jain(row["node_maxima"]),
            "overtakes_per_entry": row["overtakes"] / row["entries"],
        }
        for row in rows
    ]


def waits_picture(title: str, rows: list[Row]) -> Picture:
    names = dict.fromkeys(row["protocol"] for row in rows)
    drawn = {name: wait_distribution(select(rows, protocol=name), SHORTEST) for name in names}
    axis = f"wait, s, at least {SHORTEST:g}"
    return Picture(title, axis, "share of waits (cumulative)", drawn, log_x=True, steps=True)


def fairness_claims(rows: list[Row]) -> list[Claim]:
    def values(name: str, stays: str, measure: str) -> list[float]:
        return column(select(rows, protocol=name, stays=stays), measure)

    spreads = {name: values(name, "exponential stays", "spread") for name in ("one_line", "fair_k")}
    overtakes = {name: values(name, "equal stays", "overtakes_per_entry") for name in K_PROTOCOLS}
    others = [fmean(values) for name, values in overtakes.items() if name not in UNFAIR]
    indexes = {name: values(name, "equal stays", "jain") for name in ("bv95", "fair_k")}
    return [
        Claim(
            "one_line stays even if stays vary, and fair_k does not.",
            "",
            "",
            f"spread {estimates(spreads, 's', 0)}",
            verdict(fmean(spreads["one_line"]) < fmean(spreads["fair_k"])),
            "Longest wait less mean wait with exponential stays. The k queues of fair_k drift apart.",
            LEDGER,
        ),
        Claim(
            "Of all protocols for k permits, bv95 and srimani_reddy are by far the least fair.",
            "",
            "",
            f"overtakes per entry: {estimates(overtakes)}",
            verdict(min(fmean(overtakes[name]) for name in UNFAIR) > 5 * max(others)),
            "With equal stays. Jain index of the nodes' longest waits (1 if all are equal):"
            f" {estimates(indexes, digits=3)}.",
            "bv95.md",
        ),
    ]


def overtaking_claim(rows: list[Row]) -> Claim:
    found = {
        name: max(
            (
                column(select(rows, protocol=name, stays=stays), "overtakes_per_entry")
                for stays in ("equal stays", "exponential stays")
            ),
            key=fmean,
        )
        for name in on_a_dht.PROTOCOLS
    }
    even = [fmean(values) for name, values in found.items() if name != "strawman"]
    return Claim(
        "On a DHT all protocols but the strawman nearly keep the order of the requests.",
        "",
        "",
        f"overtakes per entry: {estimates(found, digits=2)}",
        verdict(max(even) < 1 < fmean(found["strawman"])),
        "The larger value of equal and exponential stays.",
        VOTES,
    )


CRASHING: dict[str, tuple[str, tuple[str, ...]]] = {
    "fair_k": ("fair_k", ()),
    "fair_k with backups and census": ("fair_k", backup_stack()),
    "one_line with backups and census": ("one_line", backup_stack()),
    "raymond": ("raymond", ()),
    "raymond_fd": ("raymond_fd", ()),
}


@experiment("X.crash", "Units in use while nodes crash", "Our own experiment", quick=1, paper=3)
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
    drawn = units_by_crashes(rows, ends)
    picture = Picture(
        f"{nodes} nodes, k = {k}", "nodes that have crashed", "units in use, on average", drawn, limits=(0, k)
    )
    last = {line: units_between(rows, line, *ends[-2:]) for line in drawn}
    surviving = [line for line in CRASHING if line not in ("fair_k", "raymond")]
    claim = Claim(
        "With backups or failure detectors a gate goes on until few nodes are left.",
        "",
        "",
        estimates(last),
        verdict(all(fmean(last[line]) > 0.5 for line in surviving) and fmean(last["raymond"]) < 0.1),
        f"Units in use after {len(times)} of {nodes} nodes have crashed.",
        "fair_k_backups.md",
    )
    base = replace(config, k=1, seconds=float(ends[-1]))
    routed = on_a_dht.crash_rows(bench, base)
    by_protocol = units_by_crashes(routed, ends)
    other = Picture(
        f"On a DHT, {nodes} nodes, k = 1",
        "nodes that have crashed",
        "units in use, on average",
        by_protocol,
        limits=(0, 1),
    )
    return Outcome(
        rows + routed,
        [picture, other],
        [
            claim,
            lease_claim({name: units_between(routed, name, *ends[-2:]) for name in by_protocol}, len(times), nodes),
        ],
        [on_a_dht.NOTE],
    )


def units_by_crashes(rows: list[Row], ends: list[int]) -> dict[str, Series]:
    """For each line, the units in use between one crash and the next."""
    return {
        line: [
            (float(number), *mean_and_margin(units_between(rows, line, start, end)))
            for number, (start, end) in enumerate(pairwise(ends))
        ]
        for line in dict.fromkeys(row["line"] for row in rows)
    }


def units_between(rows: list[Row], line: str, start: float, end: float) -> list[float]:
    return [units(row, start, end) for row in select(rows, line=line)]


def lease_claim(last: Mapping[str, Sequence[float]], crashed: int, nodes: int) -> Claim:
    means = {name: fmean(values) for name, values in last.items()}
    return Claim(
        "On a DHT leases keep a gate going, and without them a crash stops it.",
        "",
        "",
        estimates(last, digits=2),
        verdict(
            all(means[name] > 0.5 for name in on_a_dht.SURVIVING) and all(means[name] < 0.1 for name in on_a_dht.SHORT)
        ),
        f"Units in use after {crashed} of {nodes} nodes have crashed. e2e and non_e2e have no leases.",
        ROUTES,
    )


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
