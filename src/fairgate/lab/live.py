"""Live gates beside other locks: real processes of this host, real time.

Each lock is used as its documentation says. A lock that is not installed is left out, and the report says so. The
numbers belong to the machine that they were measured on, and to what else ran there.
"""

from collections.abc import Sequence
from statistics import fmean
from typing import Any

from fairgate.lab.contest import Load, Measured, contest
from fairgate.lab.experiment import Bench, Claim, Outcome, experiment, verdict
from fairgate.lab.plot import Picture, series_by
from fairgate.lab.rivals import CLUSTER, GATES, missing
from fairgate.lab.statistics import column, estimates, select, wait_distribution
from fairgate.lab.sweeps import SHARES, Row

ROOM = "fairgate"
OURS = (ROOM, f"fair_k{CLUSTER}")
STAY = 0.002  # seconds inside, for the waits
LEDGER = ""  # no paper: docs/room.md describes the gates of one host


def locks(bench: Bench) -> tuple[list[str], list[str]]:
    """Those to measure, and for each missing one how to install it."""
    others = bench.pick(["flock"], list(GATES)[1:], list(GATES)[1:])
    wanted = [*bench.pick(OURS[:1], OURS, OURS), *others]
    absent = [
        f"{kind} was not measured, because it is not installed: {how}" for kind in wanted if (how := missing(kind))
    ]
    return [kind for kind in wanted if not missing(kind)], absent


def measure(task: list[Any]) -> list[Row]:
    """One lock under several loads, each given as (processes, seconds inside, seconds in all)."""
    kind, *loads = task
    found = contest(kind, [Load(1, inside, processes, seconds) for processes, inside, seconds in loads])
    return [
        {"lock": kind, "processes": processes, "inside": inside, **numbers(one)}
        for (processes, inside, _), one in zip(loads, found, strict=True)
    ]


def numbers(one: Measured) -> Row:
    last = len(one.waits) - 1
    shares = [one.waits[round(step * last / SHARES)] for step in range(SHARES + 1)]
    return {name: value for name, value in vars(one).items() if name != "waits"} | {"wait_shares": shares}


@experiment(
    "X.live", "Live gates beside Redis, ZooKeeper, etcd and file locks", "Our own experiment", quick=50, paper=326
)
def live(bench: Bench) -> Outcome:
    crowds = bench.pick([2], [1, 4], [1, 2, 8])
    seconds = bench.pick(0.2, 0.5, 1.0)
    kinds, absent = locks(bench)
    loads = [*([processes, 0.0, seconds] for processes in crowds), [crowds[-1], STAY, seconds]]
    loads *= bench.pick(1, 1, 3)
    rows = [row for found in bench.one_by_one(measure, [[kind, *loads] for kind in kinds]) for row in found]
    idle, busy = select(rows, inside=0.0), select(rows, inside=STAY)
    pictures = [
        Picture("Throughput of one lock, nothing inside", "processes that contend", "grants per second",
                series_by(idle, "processes", "rate", ("lock",)), log_y=True),
        Picture(f"One lock, {crowds[-1]} processes, {1000 * STAY:g} ms inside", "wait, ms",
                "share of waits (cumulative)",
                {kind: wait_distribution(select(busy, lock=kind), 0.001, 1000) for kind in kinds},
                log_x=True, steps=True),
    ]  # fmt: skip
    return Outcome(rows, pictures, claims(rows, busy, kinds), absent)


def claims(rows: list[Row], busy: list[Row], kinds: Sequence[str]) -> list[Claim]:
    overtakes = {kind: column(select(busy, lock=kind), "overtakes") for kind in kinds}
    evenness = {kind: [row["wait_p99"] / row["wait_mean"] for row in select(busy, lock=kind)] for kind in kinds}
    idle = select(rows, inside=0.0, processes=busy[0]["processes"])
    grants = {kind: column(select(idle, lock=kind), "rate") for kind in kinds}
    most = {kind: max(row["most_inside"] for row in select(rows, lock=kind)) for kind in kinds}
    own, fewest = fmean(overtakes[ROOM]), min(fmean(overtakes[kind]) for kind in kinds if kind not in OURS)
    return [
        Claim(
            "No lock lets two processes in at once.",
            "",
            "",
            f"{most_inside(most)} in {sum(row['entries'] for row in rows):,} entries",
            verdict(max(most.values()) == 1),
            f"All {len(kinds)} locks, by the clock of the host.",
            LEDGER,
        ),
        Claim(
            "Requests enter a gate in the order in which they asked; most other locks let later ones pass.",
            "",
            "",
            f"overtakes per entry: {estimates(overtakes, digits=2)}",
            verdict(own < 0.5 and own <= fewest + 0.1),
            f"With {1000 * STAY:g} ms inside. Grants per second with nothing inside: {estimates(grants, digits=0)}.",
            LEDGER,
        ),
        Claim(
            "The longest waits of a gate are close to its mean wait.",
            "",
            "",
            f"99th percentile / mean: {estimates(evenness)}",
            verdict(fmean(evenness[ROOM]) < 2),
            f"With {1000 * STAY:g} ms inside.",
            LEDGER,
        ),
    ]


def most_inside(most: dict[str, int]) -> str:
    """Names the locks that let several processes in, given the largest number for each lock."""
    broken = [f"{kind}: {number}" for kind, number in most.items() if number > 1]
    return f"at most 1 inside ({', '.join(broken)})" if broken else "at most 1 inside"
