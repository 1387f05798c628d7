"""What the gates of a peer do, for Prometheus. It needs `pip install fairgate[metrics]`.

    from fairgate.live.metrics import serve

    with sync.join() as peer, serve(peer.engine, 9150):    # GET http://127.0.0.1:9150/metrics
        ...

A program that serves metrics already registers a `Gates(peer.engine)` with its own registry instead. Numbers are of
this peer alone, by gate, since the gate was opened here; Prometheus adds up those of all peers.
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
    raise BadInput("metrics need the package prometheus-client: pip install 'fairgate[metrics]'") from missing

LOOPBACK = "127.0.0.1"
SECOND = 1_000_000_000


def inside(gate: LiveGate) -> int:
    return sum([ticket.state == INSIDE for ticket in gate.tickets.values()])


Measure = tuple[type[CounterMetricFamily | GaugeMetricFamily], str, str, Callable[[LiveGate], float]]
MEASURES: tuple[Measure, ...] = (
    (GaugeMetricFamily, "k", "How many the gate lets in", lambda gate: gate.k),
    (GaugeMetricFamily, "inside", "Requests of this peer that are inside", inside),
    (GaugeMetricFamily, "waiting", "Requests of this peer that wait", lambda gate: len(gate.tickets) - inside(gate)),
    (CounterMetricFamily, "entries", "Permits that were given here", lambda gate: gate.counts.entries),
    (CounterMetricFamily, "wait_seconds", "Waits of all entries", lambda gate: gate.counts.waited / SECOND),
    (GaugeMetricFamily, "wait_seconds_max", "The longest wait", lambda gate: gate.counts.longest / SECOND),
    (CounterMetricFamily, "messages_sent", "Messages to other peers", lambda gate: gate.counts.sent),
    (CounterMetricFamily, "messages_received", "Messages to seats here", lambda gate: gate.counts.received),
    (CounterMetricFamily, "permits_lost", "Permits that ended before their users", lambda gate: gate.counts.lost),
    (CounterMetricFamily, "views", "Views that the gate has come under", lambda gate: gate.counts.views),
)


class GateCollector(Collector):
    """Asked anew for each scrape, so that entering a gate costs nothing more."""

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
        yield GaugeMetricFamily("fairgate_peers", "Peers that this one knows of, with itself", peers)


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
    """From now until `close()`. Port 0 is any free one: `served.port`. Whoever can reach it can read it."""
    return Served(engine, port, host)
