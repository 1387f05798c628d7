"""Section 8 of RF: *Fault Tolerant K-Mutual Exclusion Algorithm Using Failure Detector*.

15 nodes share k = 5 units, as in RF's figure 4. Nodes crash one after another until one is left.
"""

from itertools import pairwise
from typing import Any

from fairgate.lab.experiment import FAILS, HOLDS, PARTLY, Bench, Claim, Outcome, experiment, verdict
from fairgate.lab.plot import Picture, Series, series_by
from fairgate.lab.statistics import column, estimate, mean, select
from fairgate.lab.sweeps import Row

N, K = 15, 5
DETECT = 2  # seconds from a crash until every survivor has detected it
SETTLED = 150  # seconds after a crash until plain Raymond has served all requests that the victim had answered
WINDOW = 50  # seconds, for the curve over time
LEDGER = "raymond_fd.md#claims-of-the-paper-and-ours"
HOLES = "raymond_fd.md#holes"
PLAIN, EXTENDED, LITERAL = "raymond", "raymond_fd", "raymond_fd_literal"


def most_in_use(row: Row, crashes: list[int], settled: float) -> list[int]:
    """The most units in use at a time before the first crash and after each one, not counting `settled` seconds."""
    every = crashes[0]
    most = []
    for start, end in zip([0, *crashes], [*crashes, crashes[-1] + every], strict=True):
        level = [inside for when, inside in row["usage"] if when <= start + settled][-1]
        most.append(max([level, *(inside for when, inside in row["usage"] if start + settled < when < end)]))
    return most


@experiment("RF.4", "Units in use while nodes crash", "RF section 8.1, figure 4", quick=1, paper=7, estimated=True)
def units_in_use(bench: Bench) -> Outcome:
    every = bench.pick(200, 300, 300)
    crashes = [every * number for number in range(1, N)]
    faults = ",".join(f"crash:{node}@{when}" for node, when in enumerate(crashes))
    rows = bench.sweep(
        PLAIN,
        EXTENDED,
        LITERAL,
        nodes=N,
        k=K,
        rate=1.0,
        cs=10.0,
        latency="0.1",
        requests=bench.pick(300, 600, 600),
        usage=True,
        faults=f"{faults},detect:{DETECT}",
        trials=bench.pick(1, 1, 20),
        series=["usage"],
    )
    drawn: dict[str, Series] = {}
    found: dict[str, list[list[int]]] = {}
    for name, settled in ((PLAIN, SETTLED), (EXTENDED, DETECT + 1), (LITERAL, DETECT + 1)):
        found[name] = [most_in_use(row, crashes, settled) for row in select(rows, protocol=name)]
        drawn[name] = [(float(number), float(most), 0.0) for number, most in enumerate(found[name][0])]
    pictures = [
        Picture(
            f"A node crashes every {every} s (first run)",
            "time, s",
            f"most units in use within {WINDOW} s",
            over_time(rows, crashes),
            steps=True,
        ),
        Picture(
            "Once each crash has taken effect",
            "nodes that have crashed",
            "most units in use at a time",
            drawn,
        ),
    ]
    return Outcome(rows, pictures, in_use_claims(rows, found, crashes))


def over_time(rows: list[Row], crashes: list[int]) -> dict[str, Series]:
    """The most units in use in each window of the first run."""
    drawn: dict[str, Series] = {}
    for name in (PLAIN, EXTENDED):
        usage = select(rows, protocol=name)[0]["usage"]
        points, level, place = [], 0, 0
        for end in range(WINDOW, crashes[-1] + crashes[0] + 1, WINDOW):
            most = level
            while place < len(usage) and usage[place][0] < end:
                level = usage[place][1]
                most = max(most, level)
                place += 1
            points.append((float(end - WINDOW), float(most), 0.0))
        drawn[name] = points
    return drawn


def in_use_claims(rows: list[Row], found: dict[str, list[list[int]]], crashes: list[int]) -> list[Claim]:
    falling = [max(K - number, 0) for number in range(N)]
    full = [min(K, left) for left in range(N, 0, -1)]
    late = [latest_entry(row) - crashes[K - 1] for row in select(rows, protocol=PLAIN)]
    stuck = sum(row["violations"] > 0 for row in select(rows, protocol=LITERAL))
    return [
        Claim(
            "With Raymond's algorithm, each crash takes one unit away.",
            "8.1, figure 4",
            "5, 4, 3, 2, 1, 0",
            f"{listed(found[PLAIN][0][: K + 1])}, {in_all(found[PLAIN])}",
            PARTLY if all(most == falling for most in found[PLAIN]) else FAILS,
            "After requests that the victim had already answered have been served: the drop is not instant.",
            HOLES,
        ),
        Claim(
            "After k = 5 crashes Raymond's algorithm satisfies no new request.",
            "8.1",
            "none after the fifth crash",
            f"the last entry is {estimate(late, 's')} after it, at most {max(late):.0f} s",
            PARTLY if max(late) < SETTLED else FAILS,
            "Requests that the victims had already answered are still satisfied.",
            HOLES,
        ),
        Claim(
            "The extension goes on until 14 of 15 nodes have failed.",
            "8.1, figure 4",
            "5 units, or one per survivor",
            f"{listed(found[EXTENDED][0])}, {in_all(found[EXTENDED])}",
            verdict(all(most == full for most in found[EXTENDED])),
            "With one correction: a node that detects a crash lowers its own count, too. As printed, runs hung in"
            f" {stuck} of {len(found[LITERAL])} cases here; with k = 1 the last survivor waits forever.",
            HOLES,
        ),
    ]


def latest_entry(row: Row) -> float:
    return max((when for (_, before), (when, inside) in pairwise(row["usage"]) if inside > before), default=0.0)


def in_all(found: list[list[int]]) -> str:
    """In how many runs it was as in the first one."""
    alike = sum(most == found[0] for most in found)
    return f"the same in {alike} of {len(found)} runs" if len(found) > 1 else "in one run"


def listed(values: list[int]) -> str:
    return ", ".join(map(str, values))


@experiment("RF.8.2", "Messages per entry, and what a crash costs", "RF section 8.2", quick=1, paper=14, estimated=True)
def message_counts(bench: Bench) -> Outcome:
    setting: dict[str, Any] = {"k": K, "rate": 0.5, "cs": 10.0, "latency": "0.1"}
    size: dict[str, Any] = {"requests": bench.pick(20, 60, 200), "trials": bench.pick(2, 3, 10)}
    nodes = bench.pick([10, N], [10, N, 30], [10, N, 30, 60, 100])
    rows = []
    for varying in (False, True):
        found = bench.sweep(
            PLAIN, EXTENDED, nodes=nodes, exponential_cs=varying, series=["messages"], **setting, **size
        )
        stays = "stays vary" if varying else "equal stays"
        rows += [row | {"stays": stays, "sent_per_entry": per_entry(row)} for row in found]
    rows = [row | {"above_least": row["sent_per_entry"] - (2 * row["nodes"] - K - 1)} for row in rows]
    picture = Picture(
        f"k = {K}; REQUEST and REPLY messages",
        "nodes N",
        "messages per entry, less 2N-k-1",
        series_by(rows, "nodes", "above_least", ("protocol", "stays")),
        levels={"paper: at most 2N-1": float(K), "2N-2": K - 1.0, "paper: at least 2N-k-1": 0.0},
    )
    crash = bench.sweep(
        EXTENDED, nodes=N, faults=f"crash:3@100,detect:{DETECT}", series=["messages"], **setting, **size
    )
    return Outcome(rows + crash, [picture], count_claims(rows, crash))


def per_entry(row: Row) -> float:
    """Without the messages of the initialization."""
    kinds = row["messages"]
    return float(kinds["ry.request"] + kinds["ry.reply"]) / float(row["entries"])


def count_claims(rows: list[Row], crash: list[Row]) -> list[Claim]:
    at = select(rows, protocol=EXTENDED, nodes=N)
    equal, varying = (select(at, stays=stays) for stays in ("equal stays", "stays vary"))
    most, least = (
        max(column(rows_of, "sent_per_entry")[0] for rows_of in (equal, varying)),
        mean(varying, "sent_per_entry"),
    )
    within = least >= 2 * N - K - 1 and most <= 2 * N - 2
    start = [(row["messages"]["rf.init"] + row["messages"]["rf.ack"]) / N for row in equal]
    told = [float(row["messages"]["rf.crash"]) for row in crash]
    return [
        Claim(
            "Without crashes an entry costs 2N-k-1 to 2N-1 messages.",
            "8.2",
            f"{2 * N - K - 1} to {2 * N - 1}",
            f"equal stays: {estimate(column(equal, 'sent_per_entry'), '', 2)}; stays that vary: "
            f"{estimate(column(varying, 'sent_per_entry'), '', 2)}",
            HOLDS if within else FAILS,
            f"The upper bound is 2N-2 = {2 * N - 2}, which equal stays reach exactly. The lower bound"
            " holds on average only.",
            LEDGER,
        ),
        Claim(
            "During the initialization a process sends N-1 to 2(N-1) messages.",
            "8.2",
            f"{N - 1} to {2 * N - 2}",
            estimate(start),
            verdict(all(N - 1 <= sent <= 2 * N - 2 for sent in start)),
            "INIT and ACK, per process.",
            LEDGER,
        ),
        Claim(
            "A node that detects a crash sends N-1-crashed messages.",
            "8.2",
            f"{N - 2} after the first crash",
            f"{estimate([sent / (N - 1) for sent in told])} per detecting node, {estimate(told, '', 0)} in all",
            PARTLY if all(sent == (N - 1) * (N - 2) for sent in told) else FAILS,
            "Per truster: every node that trusted the victim sends them, whether or not it has heard of the crash.",
            HOLES,
        ),
    ]
