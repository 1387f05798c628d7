"""What Fair-k's backups (FK section 5) cost while nothing fails, and what they save if many nodes crash at once.

The same setting as FK's figures: 100 nodes, k = 3, stays of 10 s, latency 1 s. A hand-over is the time from an exit to
the next entry with the same token. While every node waits, it follows from the mean wait.
"""

from dataclasses import replace
from itertools import pairwise
from typing import Any

from fairgate.lab.experiment import Bench, Claim, Outcome, experiment, verdict
from fairgate.lab.plot import Picture, Series, series_by
from fairgate.lab.statistics import column, estimate, estimate_share, mean, select
from fairgate.lab.survival import K, catastrophe
from fairgate.lab.sweeps import Row
from fairgate.sim.config import backup_stack

CS, RATE, LATENCY = 10.0, 0.5, 1.0
HELD, LETTER, NONE = "messages wait for the copies", "as printed: messages do not wait", "Fair-k alone"
LEDGER = "fair_k_backups.md#what-it-costs"
FIGURE = "fair_k_backups.md#figure-6"


def hand_over(row: Row) -> float:
    return float(K * (row["wait_mean"] + CS + 1 / RATE) / row["nodes"] - CS)


def cost_runs(bench: Bench, backups: list[int]) -> list[Row]:
    setting: dict[str, Any] = {
        "nodes": bench.pick(30, 100, 100),
        "k": K,
        "cs": CS,
        "rate": RATE,
        "latency": f"{LATENCY:g}",
        "warmup": bench.pick(2, 5, 5),
        "requests": bench.pick(8, 20, 20),
        "trials": bench.pick(1, 1, 3),
    }
    stack = backup_stack(census=False)
    copied: dict[str, Any] = {"option.backups": backups}
    at_once: dict[str, Any] = {"option.backups": backups[1:], "option.hold": False}
    held = bench.sweep("fair_k", stack=stack, **copied, **setting)
    letter = bench.sweep("fair_k", stack=stack, **at_once, **setting)
    bare = bench.sweep("fair_k", **setting)
    rows = [row | {"rule": HELD} for row in held] + [row | {"rule": LETTER} for row in letter]
    rows += [row | {"rule": NONE, "option.backups": 0} for row in bare]
    return [row | {"hand_over": hand_over(row)} for row in rows]


def survival_runs(bench: Bench, backups: list[int]) -> list[Row]:
    """Runs in which a share of the nodes crashes at once. Those without a census are FK.6's own."""
    trials = bench.pick(2, 6, 20)
    rows = []
    for share, census in ((0.2, False), (0.5, False), (0.5, True)):
        configs = [catastrophe(bench.seed + trial, share, p) for p in backups for trial in range(trials)]
        if census:
            configs = [replace(config, stack=backup_stack()) for config in configs]
        line = f"{100 * share:.0f} % crash, {'with' if census else 'no'} census"
        rows += [row | {"line": line, "continued": int(row["violations"] == 0)} for row in bench.run(configs)]
    return rows


@experiment(
    "X.backups", "What backups cost, and what they save", "Our own experiment", quick=5, paper=20, estimated=True
)
def backups(bench: Bench) -> Outcome:
    numbers = bench.pick([0, 2, 4], [0, 2, 4, 6], [0, 2, 4, 6])
    cost = cost_runs(bench, numbers)
    crashed = survival_runs(bench, bench.pick([0, 4], numbers, numbers))
    ruled = [row for row in cost if row["rule"] != NONE]
    bare = select(cost, rule=NONE)
    axis = "backups of each node"

    def while_nothing_fails(what: str, label: str, name: str) -> Picture:
        drawn = series_by(ruled, "option.backups", name, ("rule",))
        return Picture(f"Cost in {what}, while nothing fails", axis, label, drawn, levels={NONE: mean(bare, name)})

    pictures = [
        while_nothing_fails("messages", "messages per entry", "messages_per_entry"),
        while_nothing_fails("time", "hand-over of a permit, s", "hand_over"),
        Picture(
            "20 or 50 % of 100 nodes crash at once",
            axis,
            "share of gates that continue",
            continued(crashed),
            limits=(0, 1),
        ),
    ]
    return Outcome(cost + crashed, pictures, claims(cost, crashed, numbers))


def continued(rows: list[Row]) -> dict[str, Series]:
    return series_by(rows, "option.backups", "continued", ("line",))


def claims(cost: list[Row], crashed: list[Row], numbers: list[int]) -> list[Claim]:
    held = {p: select(cost, rule=HELD, **{"option.backups": p}) for p in numbers}
    sent = {p: column(held[p], "messages_per_entry") for p in numbers}
    per_backup = [
        (more - fewer) / (q - p)  # by runs with the same seed
        for p, q in pairwise(numbers)
        for fewer, more in zip(sent[p], sent[q], strict=True)
    ]
    longer = [value - mean(held[0], "hand_over") for p in numbers if p for value in column(held[p], "hand_over")]
    census = select(crashed, line="50 % crash, with census")
    alone = {p: column(select(crashed, line="50 % crash, no census", **{"option.backups": p}), "continued")
             for p in sorted({row["option.backups"] for row in census})}  # fmt: skip
    return [
        Claim(
            "Every backup costs the same number of messages.",
            "",
            "",
            f"{estimate(per_backup, 'messages', 2)} per entry and backup, on top of {estimate(sent[0])} with none",
            verdict(max(per_backup) < 1.1 * min(per_backup)),
            f"Copies and acknowledgements, from {numbers[0]} to {numbers[-1]} backups. Without the channel that"
            f" resends lost messages, an entry takes {mean(select(cost, rule=NONE), 'messages_per_entry'):.1f}.",
            LEDGER,
        ),
        Claim(
            "Waiting for the copies costs one round trip per hand-over, however many backups there are.",
            "",
            "",
            f"{estimate(longer, 's', 2)} longer",
            verdict(all(abs(seconds - 2 * LATENCY) < 0.3 * LATENCY for seconds in longer)),
            f"A round trip takes {2 * LATENCY:g} s. As printed, messages do not wait, and a crash can then double"
            " a token.",
            LEDGER,
        ),
        Claim(
            "With a census a gate goes on even if some states are lost with all of their backups.",
            "",
            "",
            f"{estimate_share(column(census, 'continued'))} of {len(census)} runs, while half of the nodes crash;"
            " without a census "
            + ", ".join(f"{estimate_share(values)} with {p} backups" for p, values in alone.items()),
            verdict(all(row["continued"] for row in census)),
            "The census asks all survivors what they hold, and builds the gate anew.",
            FIGURE,
        ),
    ]
