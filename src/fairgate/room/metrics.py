"""Prometheus metrics of the gates of this host. Needs the package prometheus-client (the extra `metrics`).

    from fairgate.room.metrics import serve

    with serve(9150):    # GET http://127.0.0.1:9150/metrics
        ...

One process serves the metrics of all gates: they are read from the gates' files, also those of gates that it does not
use. A program that already serves metrics registers a `HostCollector()` with its own registry instead.
"""

from collections.abc import Iterator, Sequence
from itertools import accumulate

from fairgate.arguments import SECOND
from fairgate.prometheus import (
    LOOPBACK,
    Collector,
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Measure,
    Metric,
    Served,
    families,
)
from fairgate.room import place
from fairgate.room.host import GateView, look

MEASURES: Sequence[Measure[GateView]] = (
    (GaugeMetricFamily, "k", "Permits that the gate grants at a time", lambda gate: gate.k),
    (GaugeMetricFamily, "inside", "Permits that are held", lambda gate: gate.taken),
    (GaugeMetricFamily, "waiting", "Requests that wait", lambda gate: len(gate.waiting)),
    (CounterMetricFamily, "entries", "Requests that were granted", lambda gate: gate.counters.grants),
    (GaugeMetricFamily, "wait_seconds_max", "The longest wait", lambda gate: gate.counters.longest / SECOND),
    (CounterMetricFamily, "permits_lost", "Permits lost before they were released", lambda gate: gate.counters.losses),
)


class HostCollector(Collector):
    """Reads the gates' files at each scrape."""

    def __init__(self, folder: str | None = None, others: Sequence[tuple[str, str]] = ()) -> None:
        """The gates of a folder, by default that of this user, and `others`, as place.locate gives them."""
        self.folder = folder or place.gates_folder(create=False)
        self.others = others

    def collect(self) -> Iterator[Metric]:
        host = look(self.folder, self.others)
        gates = [(gate.name, gate) for gate in host.gates]
        yield from families(MEASURES, gates)
        waits = HistogramMetricFamily("fairgate_wait_seconds", "Waits of all entries", labels=["gate"])
        for name, gate in gates:
            waits.add_metric([name], cumulated(gate.counters.histogram), gate.counters.waited / SECOND)
        yield waits
        yield GaugeMetricFamily("fairgate_unusable_gates", "Gate files that cannot be read", len(host.unusable))


def cumulated(histogram: Sequence[int]) -> list[tuple[str, float]]:
    """For each bound in seconds, how many waited at most that long. The last one has no bound."""
    bounds = [repr((1 << bucket) / 1e6) for bucket in range(len(histogram) - 1)]
    return list(zip([*bounds, "+Inf"], accumulate(histogram), strict=True))


def serve(port: int, host: str = LOOPBACK) -> Served:
    """Serves the metrics of all gates of this host until `close()`. Anyone who can reach the port can read them.

    With port 0 the system chooses one: see `port` of the returned object. BadInput if the port cannot be used.
    """
    return Served(HostCollector(), port, host)
