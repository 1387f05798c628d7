"""Reads metrics as Prometheus does."""

from __future__ import annotations

import http.client

from prometheus_client.parser import text_string_to_metric_families

SECONDS = 30


def scrape(port: int) -> dict[tuple[str, str], float]:
    """The values by name and gate."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    connection.close()
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    return {(sample.name.removeprefix("fairgate_"), sample.labels.get("gate", "")): sample.value for sample in samples}
