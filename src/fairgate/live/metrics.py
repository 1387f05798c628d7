"""Prometheus metrics of a peer's gates. Needs the package prometheus-client (the extra `metrics`).

    from fairgate.live.metrics import serve

    with sync.join() as peer, serve(peer.engine, 9150):    # GET http://127.0.0.1:9150/metrics
        ...

A program that already serves metrics registers a `GateCollector(peer.engine)` with its own registry instead. All values
are for this peer only, per gate, since the gate was opened here; add them up over all peers in Prometheus.
"""

from collections.abc import Callable, Iterator

from fairgate.core.closing import Closing
from fairgate.errors import BadInput
from fairgate.live.engine import LiveEngine
from fairgate.live.gate import LiveGate
from fairgate.live.ticket import INSIDE

try:
    from prometheus_client import CollectorRegistry, start_http_server
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
    from prometheus_client.registry import Collector
except ModuleNotFoundError as missing:
    raise BadInput("metrics need the package prometheus-client: pip install prometheus-client") from missing

LOOPBACK = "127.0.0.1"
SECOND = 1_000_000_000


def inside(gate: LiveGate) -> int:
    return sum([ticket.state == INSIDE for ticket in gate.tickets.values()])


Measure = tuple[type[CounterMetricFamily | GaugeMetricFamily], str, str, Callable[[LiveGate], float]]
MEASURES: tuple[Measure, ...] = (
    (GaugeMetricFamily, "k", "Permits that the gate grants at a time", lambda gate: gate.k),
    (GaugeMetricFamily, "inside", "Permits that this peer holds", inside),
    (GaugeMetricFamily, "waiting", "Waiting requests of this peer", lambda gate: len(gate.tickets) - inside(gate)),
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
        with self.engine.user_lock:
            gates = sorted(self.engine.gates.items())
            found = [(measure, [(name, measure[-1](gate)) for name, gate in gates]) for measure in MEASURES]
            peers = len(self.engine.members.peers)
        for (kind, name, what, _), values in found:
            family = kind(f"fairgate_{name}", what, labels=["gate"])
            for gate, value in values:
                family.add_metric([gate], value)
            yield family
        yield GaugeMetricFamily("fairgate_peers", "Peers known to this one, including itself", peers)


class Served(Closing):
    def __init__(self, engine: LiveEngine, port: int, host: str) -> None:
        registry = CollectorRegistry()
        registry.register(GateCollector(engine))
        try:
            self.server, self.thread = start_http_server(port, host, registry)
        except (OSError, OverflowError) as wrong:
            why = (isinstance(wrong, OSError) and wrong.strerror) or wrong
            raise BadInput(f"cannot serve metrics at {host}:{port}: {why}") from wrong
        self.port = self.server.server_port

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


def serve(engine: LiveEngine, port: int, host: str = LOOPBACK) -> Served:
    """Serves metrics over HTTP until `close()`. Anyone who can reach the port can read them.

    With port 0 the system chooses one: see `port` of the returned object. BadInput if the port cannot be used.
    """
    return Served(engine, port, host)
