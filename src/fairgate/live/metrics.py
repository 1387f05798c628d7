"""Prometheus metrics of a cluster's peer. Needs the package prometheus-client (the extra `metrics`).

    from fairgate.live.metrics import serve

    with sync.join("10.0.0.5:7400") as peer, serve(peer.engine, 9150):    # GET http://127.0.0.1:9150/metrics
        ...

A program that already serves metrics registers a `GateCollector(peer.engine)` with its own registry instead. All values
are for this peer only, per gate, since the gate was opened here; add them up over all peers in Prometheus.
"""

from collections.abc import Iterator, Sequence

from fairgate.live.engine import LiveEngine
from fairgate.live.gate import LiveGate
from fairgate.live.ticket import INSIDE, WAITING
from fairgate.net.system import once
from fairgate.prometheus import (
    LOOPBACK,
    Collector,
    CounterMetricFamily,
    GaugeMetricFamily,
    Measure,
    Metric,
    Served,
    families,
)

SECOND = 1_000_000_000


def inside(gate: LiveGate) -> int:
    return sum([ticket.state == INSIDE for ticket in gate.tickets.values()])


def waiting(gate: LiveGate) -> int:
    return sum([ticket.state == WAITING for ticket in gate.tickets.values()])


MEASURES: Sequence[Measure[LiveGate]] = (
    (GaugeMetricFamily, "k", "Permits that the gate grants at a time", lambda gate: gate.k),
    (GaugeMetricFamily, "inside", "Permits that this peer holds", inside),
    (GaugeMetricFamily, "waiting", "Waiting requests of this peer", waiting),
    (CounterMetricFamily, "entries", "Permits granted to this peer", lambda gate: gate.counts.entries),
    (CounterMetricFamily, "wait_seconds", "Total wait of all entries", lambda gate: gate.counts.waited / SECOND),
    (GaugeMetricFamily, "wait_seconds_max", "The longest wait", lambda gate: gate.counts.longest / SECOND),
    (CounterMetricFamily, "messages_sent", "Messages sent to other peers", lambda gate: gate.counts.sent),
    (CounterMetricFamily, "messages_received", "Messages delivered here", lambda gate: gate.counts.received),
    (CounterMetricFamily, "permits_lost", "Permits lost before they were released", lambda gate: gate.counts.lost),
    (CounterMetricFamily, "views", "Views that the gate has had", lambda gate: gate.counts.views),
)


class GateCollector(Collector):
    """Reads the counters at each scrape, so that metrics add no cost to entering a gate."""

    def __init__(self, engine: LiveEngine) -> None:
        self.engine = engine

    def collect(self) -> Iterator[Metric]:
        for _ in once(self.engine.user_lock):
            found = list(families(MEASURES, sorted(self.engine.gates.items())))
            peers, mistakes = len(self.engine.members.peers), self.engine.mistakes
        yield from found
        yield GaugeMetricFamily("fairgate_peers", "Peers known to this one, including itself", peers)
        yield CounterMetricFamily("fairgate_mistakes", "Internal errors of fairgate in this peer", mistakes)


def serve(engine: LiveEngine, port: int, host: str = LOOPBACK) -> Served:
    """Serves metrics over HTTP until `close()`. Anyone who can reach the port can read them.

    With port 0 the system chooses one: see `port` of the returned object. BadInput if the port cannot be used.
    """
    return Served(GateCollector(engine), port, host)
