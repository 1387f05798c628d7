"""Metrics, scraped over HTTP from real peers."""

from __future__ import annotations

import asyncio
import http.client
import subprocess
import sys
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

import fairgate
from fairgate import BadInput, sync
from fairgate.live.metrics import serve

SOON = 30


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRGATE_DIR", str(tmp_path / "run"))


def scrape(port: int) -> dict[tuple[str, str], float]:
    """The values by name and gate."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SOON)
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    connection.close()
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    return {(sample.name.removeprefix("fairgate_"), sample.labels.get("gate", "")): sample.value for sample in samples}


def test_a_scrape_reports_the_gates_of_this_peer() -> None:
    with sync.join() as one, sync.join() as two, serve(one.engine, 0) as served:
        assert set(scrape(served.port)) == {("peers", "")}
        gpu, report = one.semaphore("gpu", k=2), one.lock("report")
        with gpu, gpu, report.hold(lease=60):
            waiting = scrape(served.port)
            assert (waiting["inside", "gpu"], waiting["k", "gpu"], waiting["inside", "report"]) == (2, 2, 1)
            assert two.semaphore("gpu", k=2).acquire(timeout=0.001) is None
        with two.semaphore("gpu", k=2):
            pass
        statistics = gpu.statistics()
        found = scrape(served.port)
        assert found["inside", "gpu"] == found["waiting", "gpu"] == found["inside", "report"] == 0
        assert found["entries_total", "gpu"] == 2
        assert found["entries_total", "report"] == 1
        assert found["wait_seconds_total", "gpu"] == pytest.approx(2 * statistics.wait_mean)
        assert 0 < found["wait_seconds_max", "gpu"] == statistics.wait_max < found["wait_seconds_total", "gpu"]
        assert found["messages_sent_total", "gpu"] > 0
        assert found["messages_received_total", "gpu"] > 0
        assert found["views_total", "gpu"] > found["views_total", "report"] == 1
        assert found["permits_lost_total", "gpu"] == 0
        assert found["peers", ""] == 2


def test_waiters_are_counted() -> None:
    async def main() -> None:
        async with fairgate.join() as peer:
            gate = peer.lock("report")
            with serve(peer.engine, 0) as served:
                async with gate:
                    asked = asyncio.create_task(gate.acquire())
                    await asyncio.sleep(0)  # it makes its request in its first turn
                    found = await asyncio.to_thread(scrape, served.port)
                    assert (found["waiting", "report"], found["inside", "report"]) == (1, 1)
                permit = await asyncio.wait_for(asked, SOON)
                assert permit is not None
                found = await asyncio.to_thread(scrape, served.port)
                assert (found["waiting", "report"], found["inside", "report"]) == (0, 1)

    asyncio.run(main())


def test_lost_permits_are_counted() -> None:
    with sync.join() as peer, serve(peer.engine, 0) as served:
        permit = peer.lock("report").acquire(lease=0.5)
        assert permit is not None
        assert permit.lost.wait(SOON)
        assert scrape(served.port)["permits_lost_total", "report"] == 1


def test_a_port_in_use_is_reported() -> None:
    with sync.join() as peer, serve(peer.engine, 0) as served:
        with pytest.raises(BadInput, match=f"cannot serve metrics at 127.0.0.1:{served.port}: Address already in use"):
            serve(peer.engine, served.port)
        with pytest.raises(BadInput, match=r"cannot serve metrics at 127\.0\.0\.1:70000"):
            serve(peer.engine, 70000)


def test_the_missing_package_is_named() -> None:
    lines = "import sys; sys.modules['prometheus_client'] = None; import fairgate.live.metrics"
    done = subprocess.run([sys.executable, "-c", lines], capture_output=True, text=True, timeout=SOON, check=False)
    assert done.stderr.splitlines()[-1] == (
        "fairgate.errors.BadInput: metrics need the package prometheus-client: pip install prometheus-client"
    )
