"""The figures of SG: *A Practical Distributed Mutual Exclusion Protocol in Dynamic Peer-to-Peer Systems*.

n = 32 replicas, of which m = 24 must vote. Requests come from a large pool of clients as a Poisson process, and clients
leave as soon as they are inside. Throughput at saturation has a law: the next client gets in when 24 of 32 replicas
have heard of the release and their votes have arrived, so it is 1 / E[24th smallest of 32 sums of two latencies].
"""

import random
from functools import cache
from statistics import fmean
from typing import Any

from fairgate.lab.experiment import FAILS, PARTLY, Bench, Claim, Outcome, experiment, verdict
from fairgate.lab.plot import Picture, series_by
from fairgate.lab.sigma_risk import break_probability
from fairgate.lab.statistics import column, estimate, mean, select
from fairgate.lab.sweeps import Row

N, M = 32, 24
TINY = (8, 6)  # for tests
WIDTHS = {"(0,200) ms": (0.0, 0.2), "(50,150) ms": (0.05, 0.15), "(90,110) ms": (0.09, 0.11), "100 ms": (0.1, 0.1)}
WIDEST, CONSTANT = "(0,200) ms", "100 ms"
LEDGER = "sigma.md#figures"
STAY, LIFE = 10.0, 10_000.0
DRAWS = 20_000
PREDICTION = (
    f"Predicted throughput at saturation: the next client gets in when {M} of {N} replicas have heard of the release"
    f" and their votes have arrived, so it is 1 / E[{M}th smallest of {N} sums of two latencies], from random draws."
)
PAST_TWO = {"(90,110) ms": (3.0,), CONSTANT: (3.0, 4.0)}  # requests per second at which others have collapsed


@cache
def law(n: int, m: int, low: float, high: float) -> float:
    """Entries per second at saturation, estimated from random draws."""
    draw = random.Random(1)
    total = 0.0
    for _ in range(DRAWS):
        total += sorted(draw.uniform(low, high) + draw.uniform(low, high) for _ in range(n))[m - 1]
    return DRAWS / total


def votes(bench: Bench) -> tuple[int, int]:
    return bench.pick(TINY, (N, M), (N, M))


def trials(bench: Bench) -> int:
    return bench.pick(1, 1, 3)


def load(
    bench: Bench, protocol: str, latency: str, rates: list[float], trials: int, length: float = 1.0, **more: Any
) -> list[Row]:
    """Runs with requests that come at these rates, of all clients together; `length` is that of a run.

    In the paper size a run has SG's 5 minutes of warm-up and 10 minutes of measurement.
    """
    n, m = votes(bench)
    low, high = WIDTHS[latency]
    seconds, warm = bench.pick((60.0, 20.0), (100.0, 30.0), (900.0, 300.0))
    grid: dict[str, Any] = {"option.replicas": n, "option.quorum": m, **more}
    rows = bench.sweep(
        protocol,
        nodes=bench.pick(600, 1_500, 8_000),
        workload="open",
        rate=rates,
        cs=0.0,
        seconds=length * seconds,
        warmup_seconds=length * warm,
        trials=trials,
        latency=f"uniform:{low:g},{high:g}" if low < high else f"{low:g}",
        **grid,
    )
    return [row | {"latencies": latency, "per_replica": row["messages_per_entry"] / n} for row in rows]


@experiment("SG.2", "Chance that lost memories break mutual exclusion", "SG section III, figure 2", quick=0, paper=0)
def break_chance(bench: Bench) -> Outcome:
    """No simulation: the tail of a binomial distribution."""
    ratios = {"m/n = 0.625": (5, 8), "m/n = 0.75": (3, 4), "m/n = 0.875": (7, 8)}
    sizes = [8, 16, 24, 32, 40, 48, 56, 64]
    rows = [
        {"ratio": name, "n": n, "m": n * up // down, "chance": break_probability(n, n * up // down, STAY, LIFE)}
        for name, (up, down) in ratios.items()
        for n in sizes
    ]
    picture = Picture(
        "", "replicas n", "chance that two clients are inside", series_by(rows, "n", "chance", ("ratio",)), log_y=True
    )
    found = break_probability(N, M, STAY, LIFE)
    claim = Claim(
        "With n = 32 and m = 24 the chance of breaking exclusivity is 1e-40.",
        "III, figure 2",
        "1e-40",
        f"{found:.1e} (exact)",
        verdict(1e-41 < found < 1e-39),
        "The tail of Binomial(n, t/T) from 2m-n on: so many replicas must vote twice. t = 10 s, T = 10,000 s.",
        LEDGER,
    )
    return Outcome(rows, [picture], [claim])


def strawman_runs(bench: Bench, latency: str) -> list[Row]:
    """Past its collapse all clients that ever came ask again and again, which takes long.

    So the paper size has half of SG's length, and rates far past the collapse only where there is none.
    """
    rates = bench.pick([0.5, 4.0], [0.3, 0.6, 1.0, 2.0, 4.0], [0.3, 0.6, 1.0, 1.5, 2.0, *PAST_TWO.get(latency, ())])
    return load(bench, "strawman", latency, rates, trials(bench), length=bench.pick(1.0, 1.0, 0.5))


@experiment("SG.3", "Throughput of the strawman", "SG section III, figure 3", quick=2, paper=11, estimated=True)
def strawman(bench: Bench) -> Outcome:
    widths = bench.pick([WIDEST, CONSTANT], list(WIDTHS), list(WIDTHS))
    rows = [row for latency in widths for row in strawman_runs(bench, latency)]
    rates = sorted({row["rate"] for row in rows if row["latencies"] == WIDEST})
    picture = Picture(
        "", "requests per second", "entries per second", series_by(rows, "rate", "throughput", ("latencies",))
    )
    wide, narrow = (select(rows, latencies=name, rate=rates[-1]) for name in (WIDEST, CONSTANT))
    few = select(rows, latencies=WIDEST, rate=rates[0])
    claims = [
        Claim(
            "Under contention the strawman's throughput degrades essentially to zero.",
            "III, figure 3",
            "about 0",
            f"{estimate(column(wide, 'throughput'), 'entries/s', 2)} at {rates[-1]:g} requests/s",
            verdict(mean(wide, "throughput") < 0.3 * mean(few, "throughput")),
            f"At {rates[0]:g} requests/s it is {mean(few, 'throughput'):.2f}. SG does not give the"
            " back-off: ours is up to 2 s.",
            LEDGER,
        ),
        Claim(
            "The higher the variance of the latency, the worse the throughput.",
            "III, figure 3",
            "worse",
            f"{estimate(column(wide, 'throughput'), '', 2)} for {WIDEST},"
            f" {estimate(column(narrow, 'throughput'), '', 2)} for {CONSTANT}",
            verdict(mean(wide, "throughput") < mean(narrow, "throughput")),
            f"Entries per second at {rates[-1]:g} requests/s.",
            LEDGER,
        ),
    ]
    return Outcome(rows, [picture], claims)


def loads(bench: Bench) -> list[Row]:
    """The runs of figure 7, from which the message cost follows as well."""
    shares = bench.pick([0.5, 2.0], [0.25, 0.5, 0.95, 2.0], [0.25, 0.5, 0.75, 0.95, 1.25, 2.0])
    widths = bench.pick([WIDEST, CONSTANT], [WIDEST, CONSTANT], list(WIDTHS))
    rows = []
    for latency in widths:
        most = law(*votes(bench), *WIDTHS[latency])
        found = load(bench, "sigma", latency, [round(share * most, 3) for share in shares], trials(bench))
        rows += [row | {"law": most, "of_law": round(row["rate"] / most, 2)} for row in found]
    return rows


@experiment(
    "SG.7",
    "Throughput of Sigma against contention and variance of the latency",
    "SG section V, figure 7",
    quick=1,
    paper=57,
    estimated=True,
)
def throughput(bench: Bench) -> Outcome:
    rows = loads(bench)
    collapsing = strawman_runs(bench, WIDEST)
    drawn = {f"sigma, {name}": points for name, points in series_by(rows, "rate", "throughput", ("latencies",)).items()}
    drawn |= {f"strawman, {WIDEST}": series_by(collapsing, "rate", "throughput", ("latencies",))[WIDEST]}
    levels = {f"predicted, {name}": select(rows, latencies=name)[0]["law"] for name in (WIDEST, CONSTANT)}
    picture = Picture("", "requests per second", "entries per second", drawn, levels=levels)
    full = [row for row in rows if row["of_law"] >= 1.9]
    ratios = [row["throughput"] / row["law"] for row in full]
    idle = [row for row in rows if row["of_law"] < 0.6]
    most = max(row["rate"] for row in collapsing)
    ours = column(select(full, latencies=WIDEST), "throughput")
    theirs = column(select(collapsing, rate=most), "throughput")
    claims = [
        Claim(
            "Past saturation, throughput stays flat at the predicted rate.",
            "V, figure 7",
            "the predicted rate",
            f"{estimate(ratios, '', 3)} times the predicted rate",
            verdict(all(0.95 < ratio < 1.05 for ratio in ratios)),
            "Requests come at twice the predicted rate, with all latencies together.",
            LEDGER,
        ),
        Claim(
            "Below saturation, throughput grows linearly with the request rate.",
            "V, figure 7",
            "linear",
            f"{estimate([row['throughput'] / row['rate'] for row in idle], '', 3)} entries per request",
            verdict(all(0.75 < row["throughput"] / row["rate"] < 1.25 for row in idle)),
            "Up to half of the predicted rate. Short runs have few requests, which come at random.",
            LEDGER,
        ),
        Claim(
            "The improvement over the strawman is significant.",
            "V, figure 7",
            "the strawman collapses",
            f"Sigma {estimate(ours, 'entries/s', 2)}, the strawman {estimate(theirs, 'entries/s', 2)}",
            verdict(fmean(ours) > 5 * fmean(theirs)),
            f"Sigma at twice the predicted rate, and the strawman at {most:g} requests/s, with {WIDEST}.",
            LEDGER,
        ),
    ]
    return Outcome(rows + collapsing, [picture], claims, [PREDICTION])


@experiment(
    "SG.8",
    "Throughput of Sigma while replicas lose their memory",
    "SG section V, figure 8",
    quick=1,
    paper=48,
    estimated=True,
)
def lost_memories(bench: Bench) -> Outcome:
    most = law(*votes(bench), *WIDTHS[WIDEST])
    lives = bench.pick([30.0, 10_000.0], [30.0, 100.0, 10_000.0], [30.0, 100.0, 300.0, 1_000.0, 10_000.0])
    rows = []
    for retry, name in ((100, "clients ask again after Tw"), (80, "clients ask again after 0.8 Tw")):
        found = load(
            bench, "sigma", WIDEST, [round(2 * most, 3)], trials(bench), replica_life=lives, **{"option.retry": retry}
        )
        rows += [row | {"rule": name} for row in found]
    drawn = series_by(rows, "replica_life", "throughput", ("rule",))
    picture = Picture(
        "",
        "mean lifetime of a replica, s",
        "entries per second",
        drawn,
        log_x=True,
        levels={"predicted without resets": most},
    )
    late, early = (select(rows, **{"option.retry": retry}) for retry in (100, 80))
    long = select(early, replica_life=lives[-1])
    claims = [
        Claim(
            "With lifetimes of 10,000 s the theoretical throughput is achieved.",
            "V, figure 8",
            f"{most:.2f} entries/s",
            estimate(column(long, "throughput"), "entries/s", 2),
            verdict(abs(mean(long, "throughput") / most - 1) < 0.05),
            "If clients ask again after 80 % of the expected wait Tw.",
            LEDGER,
        ),
        Claim(
            "With lifetimes of 30 s the penalty is perceptible, and it shrinks with longer lifetimes.",
            "V, figure 8",
            "perceptible",
            f"entries/s for lifetimes of {', '.join(f'{life:,.0f}' for life in lives)} s, if clients ask again after"
            f" Tw: {by_life(late, lives)}; after 0.8 Tw: {by_life(early, lives)}",
            PARTLY
            if mean(select(late, replica_life=lives[0]), "throughput") < 0.97 * mean(long, "throughput")
            else FAILS,
            "It depends on when clients ask again. After the whole expected wait Tw, a replica that lost its memory"
            " learns of them too late, and the penalty need not shrink steadily.",
            LEDGER,
        ),
    ]
    return Outcome(rows, [picture], claims, [PREDICTION])


def by_life(rows: list[Row], lives: list[float]) -> str:
    return ", ".join(estimate(column(select(rows, replica_life=life), "throughput"), "", 2) for life in lives)


@experiment(
    "SG.4n", "Messages per entry of Sigma, in multiples of n", "SG section V", quick=1, paper=39, estimated=True
)
def message_cost(bench: Bench) -> Outcome:
    rows = loads(bench)
    picture = Picture(
        "",
        "request rate / predicted saturation rate",
        "messages per entry / n",
        series_by(rows, "of_law", "per_replica", ("latencies",)),
        levels={"4n, the paper's bound": 4.0},
    )
    idle, full = [row for row in rows if row["of_law"] < 0.6], [row for row in rows if row["of_law"] >= 1.9]
    claim = Claim(
        "The message cost is asymptotically bound by 4n.",
        "V",
        "4n",
        f"{estimate(column(idle, 'per_replica'), '', 2)} n up to half of the predicted rate,"
        f" {estimate(column(full, 'per_replica'), '', 1)} n at twice that rate",
        PARTLY if mean(idle, "per_replica") < 5 else FAILS,
        "Below saturation, with one more question for the time by fresh clients. Past it, waiting"
        " clients ask again (informed"
        " backoff), and the backlog grows with the length of the run.",
        LEDGER,
    )
    return Outcome(rows, [picture], [claim], [PREDICTION])
