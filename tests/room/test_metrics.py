"""Metrics of the gates of a host, scraped over HTTP."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from fairgate.errors import BadInput
from fairgate.room.layout import BUCKETS, GRANTS, HISTOGRAM, LONGEST, SLOTS, WAITED
from fairgate.room.links import count
from fairgate.room.metrics import HostCollector, serve
from fairgate.room.room import Room
from fairgate.room.words import copied
from tests.room.visitors import holder, waiter
from tests.support.scrape import scrape


@pytest.fixture(autouse=True)
def here(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRGATE_DIR", folder)


def test_all_gates_of_the_host_are_served(folder: str, children: ExitStack) -> None:
    with serve(0) as served:
        assert scrape(served.port) == {("unusable_gates", ""): 0}
        first = children.enter_context(holder(folder, 2, "gpu"))
        children.enter_context(holder(folder, 3, "cpu", permits=2))
        children.enter_context(waiter(folder, 3, "cpu", permits=3))
        late = children.enter_context(waiter(folder, 2, "gpu", permits=2))
        found = scrape(served.port)
        assert [found[name, "cpu"] for name in ("k", "inside", "waiting", "entries_total")] == [3, 2, 1, 1]
        assert [found[name, "gpu"] for name in ("k", "inside", "waiting", "entries_total")] == [2, 1, 1, 1]
        first.end()
        assert late.hear() == "(0, 1)"
        with Room(folder, "gpu") as room:
            assert room.revoke(0)
        found = scrape(served.port)
        assert [found[name, "gpu"] for name in ("inside", "waiting", "entries_total")] == [0, 0, 2]
        assert [found[name, "gpu"] for name in ("permits_lost_total", "wait_seconds_count")] == [1, 2]
        assert 0 < found["wait_seconds_max", "gpu"] <= found["wait_seconds_sum", "gpu"]


def test_the_histogram_of_waits(folder: str) -> None:
    with Room(folder, "gpu", 1) as room:
        for _ in range(3):
            permit = room.acquire()
            assert permit
            permit.release()
    registry = CollectorRegistry()
    registry.register(HostCollector())
    families = text_string_to_metric_families(generate_latest(registry).decode())
    [waits] = [family for family in families if family.name == "fairgate_wait_seconds"]
    buckets = [sample for sample in waits.samples if sample.name.endswith("_bucket")]
    assert [float(sample.labels["le"]) for sample in buckets] == [
        *[2**power / 1e6 for power in range(BUCKETS - 1)],
        float("inf"),
    ]
    assert [sample.value for sample in buckets] == [3.0] * BUCKETS  # none of them waited
    assert {sample.labels["gate"] for sample in buckets} == {"gpu"}


def test_the_counters_begin_again_before_the_sum_of_the_waits_is_too_large() -> None:
    year = 365 * 86_400 * 10**9
    m = copied(bytes(8 * SLOTS))
    for waits in range(1, 147):
        count(m, year)
        assert (m[GRANTS], m[WAITED], m[LONGEST]) == (waits, waits * year, year)
    count(m, 1_500)
    count(m, year)
    assert (m[GRANTS], m[WAITED], m[LONGEST]) == (1, year, year)
    assert [m[HISTOGRAM + bucket] for bucket in range(BUCKETS)] == [*[0] * (BUCKETS - 1), 1]


def test_gates_elsewhere_and_files_that_are_not_usable(folder: str, tmp_path: Path, children: ExitStack) -> None:
    elsewhere = tmp_path / "shared"
    elsewhere.mkdir()
    path = str(elsewhere / "lab.gate")
    children.enter_context(holder(str(elsewhere), 4, path))
    Path(folder, "bad.gate").write_text("noise")
    registry = CollectorRegistry()
    registry.register(HostCollector(others=[(str(elsewhere), path)]))
    assert registry.get_sample_value("fairgate_inside", {"gate": path}) == 1
    assert registry.get_sample_value("fairgate_unusable_gates") == 1


def test_a_port_in_use_is_reported() -> None:
    with serve(0) as served:
        with pytest.raises(BadInput, match=f"cannot serve metrics at 127.0.0.1:{served.port}: Address already in use"):
            serve(served.port)
        with pytest.raises(BadInput, match=r"cannot serve metrics at 127\.0\.0\.1:70000"):
            serve(70000)
