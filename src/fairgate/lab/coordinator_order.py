"""FK section 3.2: "all the requests are satisfied in order of their coordinator timestamps". Are they?

A node has its turn from the moment at which TokenLocations is sent to it, which makes it the coordinator. An entry is
as many places early as there are nodes that got their turn before it and have yet to enter.
"""

import io
from collections import Counter
from collections.abc import Iterable

from fairgate.lab.experiment import Bench, Claim, Outcome, experiment, verdict
from fairgate.lab.plot import Picture, Series
from fairgate.lab.statistics import column, estimate, mean_and_margin, select
from fairgate.lab.survival import K, N
from fairgate.lab.sweeps import Row
from fairgate.protocols.fair_k import TokenLocations
from fairgate.sim.build import build
from fairgate.sim.config import Config
from fairgate.sim.recorder import EngineRecorder
from fairgate.sim.run import run
from fairgate.trace.journal import Effect, JournalWriter, Step


class EntriesEarly(JournalWriter):
    """Counts entries by how many places early they are, instead of writing a journal.

    A node that enters with its own idle token needs no turn, and is left out.
    """

    def __init__(self) -> None:
        super().__init__(io.BytesIO())
        self.queued: list[int] = []
        self.places: Counter[int] = Counter()

    def step(self, step: Step) -> None:
        for effect in step.effects:
            if effect[0] == "send" and effect[2][0] == TokenLocations.tag:
                self.queued.append(effect[1])
            elif came_by_queue(step, effect):
                self.places[self.queued.index(step.node)] += 1
                self.queued.remove(step.node)


def came_by_queue(step: Step, effect: Effect) -> bool:
    return effect[0] == "granted" and step.event != "acquire"


def places_early(steps: Iterable[Step]) -> Counter[int]:
    early = EntriesEarly()
    for step in steps:
        early.step(step)
    return early.places


def shares_early(config: Config) -> list[float]:
    """The shares of entries that are in their place, one place early, two places early, and so on."""
    engine, early = build(config), EntriesEarly()
    engine.recorder = EngineRecorder(early, engine)
    if not run(engine, None):
        raise KeyboardInterrupt
    total = early.places.total()
    return [early.places[places] / total for places in range(max(early.places) + 1)]


@experiment("FK.order", "Order of entry against the order of the coordinators", "FK section 3.2", quick=2, paper=252)
def coordinator_order(bench: Bench) -> Outcome:
    wide = "WAN, synthetic" if bench.wide_area == "wan" else "WAN, from the file"
    rows: list[Row] = []
    for network, latency in (("LAN", "1"), (wide, bench.wide_area)):
        config = Config("fair_k", nodes=N, k=K, latency=latency, requests=bench.pick(12, 50, 200))
        configs = bench.seeds(config, bench.pick(3, 5, 100))
        rows += [
            {
                "network": network,
                "seed": each.seed,
                "in_place": shares[0],
                "most_places_early": len(shares) - 1,
                "shares": shares,
            }
            for each, shares in zip(configs, bench.map(shares_early, configs), strict=True)
        ]
    drawn = {network: by_places(select(rows, network=network)) for network in ("LAN", wide)}
    picture = Picture("", "places early", "share of the entries", drawn, limits=(0, 1))
    claim = Claim(
        "All requests are satisfied in the order of their coordinator timestamps.",
        "3.2",
        "all in order",
        "; ".join(f"{network}: {in_order(select(rows, network=network))}" for network in drawn),
        verdict(all(row["in_place"] == 1 for row in rows)),
        f"Each of the k = {K} queues keeps this order, but they run in different phases, so a later turn in one queue"
        " can come before an earlier one in another. With equal latencies a run keeps the phases that it starts with,"
        " so runs differ. With k = 1 the claim holds.",
        "fair_k.md#holes",
    )
    return Outcome(rows, [picture], [claim])


def by_places(rows: list[Row]) -> Series:
    """The share of entries against the number of places that they are early, as a mean over the runs."""
    most = max(row["most_places_early"] for row in rows)
    padded = [[*row["shares"], *[0.0] * (most - row["most_places_early"])] for row in rows]
    return [(float(places), *mean_and_margin(found)) for places, found in enumerate(zip(*padded, strict=True))]


def in_order(rows: list[Row]) -> str:
    share = estimate([100 * value for value in column(rows, "in_place")], "%")
    most = max(column(rows, "most_places_early"))
    return f"{share} of the entries in their place, the others up to {most:g} places early"
