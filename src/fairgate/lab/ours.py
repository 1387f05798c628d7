"""Experiments of our own: all protocols side by side, by cost, by fairness, and while nodes crash."""

from dataclasses import replace
from math import log
from statistics import fmean
from typing import Any

from fairgate.lab import on_a_dht
from fairgate.lab.experiment import Bench, Claim, Outcome, experiment, verdict
from fairgate.lab.plot import Picture, Series, series_by
from fairgate.lab.statistics import mean, select
from fairgate.lab.sweeps import SHARES, Row
from fairgate.sim.config import Config, backup_stack

FEW = ("one_line", "fair_k", "bv95", "naimi_trehel", "raymond_tree", "centralised")  # messages: log N or fewer
HUGE = ("one_line", "fair_k", "naimi_trehel")  # of these, the ones whose runs with 100,000 nodes take seconds
MANY = ("maekawa", "suzuki_kasami", "ricart_agrawala", "raymond")  # messages: at least the root of N
K_PROTOCOLS = ("one_line", "fair_k", "fair_k_bounded", "bv95", "srimani_reddy", "raymond", "centralised")
LEDGER = "one_line.md"
SHORTEST = 0.1  # seconds: shorter waits are drawn here, since a logarithmic axis has no 0
ROUTES, VOTES = "e2e.md#holes-and-corrections", "sigma.md#figures"  # ledgers of the protocols on a DHT


@experiment(
    "X.cost", "Messages per entry against the number of nodes, all protocols", "Our own experiment", quick=1, paper=55
)
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
        "k = 1; every node asks again and again",
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


def hop_claims(rows: list[Row]) -> list[Claim]:
    def ends(names: tuple[str, ...]) -> tuple[list[int], dict[str, tuple[float, float]]]:
        """The smallest number of nodes and the largest, and the hops per entry of each protocol with these."""
        sizes = sorted({row["nodes"] for row in select(rows, protocol=names[0])})
        few, many = sizes[0], sizes[-1]
        found = {
            name: (
                mean(select(rows, protocol=name, nodes=few), "hops_per_entry"),
                mean(select(rows, protocol=name, nodes=many), "hops_per_entry"),
            )
            for name in names
        }
        return [few, many], found

    def told(found: dict[str, tuple[float, float]]) -> str:
        return ", ".join(f"{name} {first:,.1f} to {last:,.1f}" for name, (first, last) in found.items())

    (few, many), short = ends(on_a_dht.SHORT)
    (least, most), linear = ends(on_a_dht.LINEAR)
    route = max(1.0, log(many, 16))  # hops of a Pastry route with digits of four bits
    return [
        Claim(
            "On a DHT, e2e and non_e2e need O(log N) hops.",
            "",
            "",
            told(short),
            verdict(all(last < 1.3 * route * first for first, last in short.values())),
            f"From {few} to {many:,} nodes. Routes get longer.",
            ROUTES,
        ),
        Claim(
            "The hops of sigma_zones and the strawman grow in proportion to N.",
            "",
            "",
            told(linear),
            verdict(all(last / first > 0.5 * most / least for first, last in linear.values())),
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
    drawn: dict[str, Series] = {name: distribution(select(rows, protocol=name)) for name in names}
    axis = f"wait, s, at least {SHORTEST:g}"
    return Picture(title, axis, "share of waits (cumulative)", drawn, log_x=True, steps=True)


def distribution(rows: list[Row]) -> Series:
    """Of the waits of several runs: the mean of their quantiles."""
    columns = zip(*(row["wait_shares"] for row in rows), strict=True)
    return [(max(fmean(values), SHORTEST), step / SHARES, 0.0) for step, values in enumerate(columns)]


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
            "Of all protocols for k permits, bv95 is the least fair.",
            "",
            "",
            "overtakes per entry: "
            + ", ".join(f"{name} {value(name, equal, 'overtakes_per_entry'):.1f}" for name in K_PROTOCOLS),
            verdict(max(K_PROTOCOLS, key=lambda name: value(name, equal, "overtakes_per_entry")) == "bv95"),
            f"With equal stays. Jain index of the nodes' longest waits (1 if all are equal): bv95"
            f" {value('bv95', equal, 'jain'):.3f}, fair_k {value('fair_k', equal, 'jain'):.3f}.",
            "bv95.md",
        ),
    ]


def overtaking_claim(rows: list[Row]) -> Claim:
    found = {
        name: max(
            mean(select(rows, protocol=name, stays=stays), "overtakes_per_entry")
            for stays in ("equal stays", "exponential stays")
        )
        for name in on_a_dht.PROTOCOLS
    }
    even = [value for name, value in found.items() if name != "strawman"]
    return Claim(
        "On a DHT all protocols but the strawman nearly keep the order of the requests.",
        "",
        "",
        "overtakes per entry: " + ", ".join(f"{name} {value:.2f}" for name, value in found.items()),
        verdict(max(even) < 1 < found["strawman"]),
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
    base = replace(config, k=1, seconds=float(ends[-1]))
    routed = on_a_dht.crash_rows(bench, base)
    by_protocol = units_by_crashes(routed, ends)
    other = Picture(
        f"On a DHT, {nodes} nodes, k = 1", "nodes that have crashed", "units in use, on average", by_protocol
    )
    return Outcome(
        rows + routed,
        [picture, other],
        [claim, lease_claim(by_protocol, len(times), nodes)],
        [on_a_dht.NOTE],
    )


def units_by_crashes(rows: list[Row], ends: list[int]) -> dict[str, Series]:
    """For each line, the units in use between one crash and the next."""
    return {
        line: [
            (float(number), fmean(units(row, ends[number], ends[number + 1]) for row in select(rows, line=line)), 0.0)
            for number in range(len(ends) - 1)
        ]
        for line in dict.fromkeys(row["line"] for row in rows)
    }


def lease_claim(drawn: dict[str, Series], crashed: int, nodes: int) -> Claim:
    last = {name: points[-1][1] for name, points in drawn.items()}
    return Claim(
        "On a DHT leases keep a gate going, and without them a crash stops it.",
        "",
        "",
        ", ".join(f"{name}: {value:.2f}" for name, value in last.items()),
        verdict(
            all(last[name] > 0.5 for name in on_a_dht.SURVIVING) and all(last[name] < 0.1 for name in on_a_dht.SHORT)
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
