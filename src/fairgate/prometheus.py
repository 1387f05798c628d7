"""Serves Prometheus metrics over HTTP. Needs the package prometheus-client (the extra `metrics`).

The collectors are in room/metrics.py (the gates of a host) and live/metrics.py (a peer of a cluster). They import the
classes of that package from here, where a missing package is reported in one line.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from fairgate.core.closing import Closing
from fairgate.errors import BadInput

try:
    from prometheus_client import CollectorRegistry, start_http_server
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
    from prometheus_client.registry import Collector
except ModuleNotFoundError as missing:
    raise BadInput("metrics need the package prometheus-client: pip install prometheus-client") from missing

LOOPBACK = "127.0.0.1"
T = TypeVar("T")
Measure = tuple[type[CounterMetricFamily | GaugeMetricFamily], str, str, Callable[[T], float]]


def families(measures: Sequence[Measure[T]], gates: Sequence[tuple[str, T]]) -> Iterator[Metric]:
    """One family for each measure, with the values of all gates by name."""
    for kind, name, what, value in measures:
        family = kind(f"fairgate_{name}", what, labels=["gate"])
        for gate, about in gates:
            family.add_metric([gate], value(about))
        yield family


class Served(Closing):
    """Metrics are served until `close()`. `port` is the one that the system chose, if it was to choose one."""

    def __init__(self, collector: Collector, port: int, host: str) -> None:
        registry = CollectorRegistry()
        registry.register(collector)
        try:
            self.server, self.thread = start_http_server(port, host, registry)
        except (OSError, OverflowError) as wrong:
            why = (isinstance(wrong, OSError) and wrong.strerror) or wrong
            raise BadInput(f"cannot serve metrics at {host}:{port}: {why}") from wrong
        self.url = f"http://{host}:{self.server.server_port}/metrics"
        self.port = self.server.server_port

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


__all__ = [
    "LOOPBACK", "Collector", "CounterMetricFamily", "GaugeMetricFamily", "HistogramMetricFamily", "Measure", "Metric",
    "Served", "families",
]  # fmt: skip
