"""Metrics, scraped over HTTP from real peers of a cluster."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import fairgate
from fairgate import BadInput, sync
from fairgate.live.metrics import serve
from tests.live.commands import until
from tests.support.scrape import scrape

SOON = 30


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRGATE_DIR", str(tmp_path / "run"))


@pytest.fixture
def one() -> Iterator[sync.Peer]:
    """The peer that creates the cluster."""
    with sync.join(listen="127.0.0.1:0") as peer:
        yield peer


def test_a_scrape_reports_the_gates_of_this_peer(one: sync.Peer) -> None:
    with sync.join(one.engine.identity.address) as two, serve(one.engine, 0) as served:
        assert set(scrape(served.port)) == {("peers", ""), ("mistakes_total", "")}
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
        assert (found["peers", ""], found["mistakes_total", ""]) == (2, 0)


def test_waiters_are_counted() -> None:
    async def main() -> None:
        async with fairgate.join(listen="127.0.0.1:0") as peer:
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


def test_lost_permits_are_counted(one: sync.Peer) -> None:
    with serve(one.engine, 0) as served:
        permit = one.lock("report").acquire(lease=0.5)
        assert permit is not None
        assert permit.lost.wait(SOON)
        until(lambda: scrape(served.port)["permits_lost_total", "report"] == 1)  # counted by the engine's thread


def test_a_port_in_use_is_reported(one: sync.Peer) -> None:
    with serve(one.engine, 0) as served:
        with pytest.raises(BadInput, match=f"cannot serve metrics at 127.0.0.1:{served.port}: Address already in use"):
            serve(one.engine, served.port)
        with pytest.raises(BadInput, match=r"cannot serve metrics at 127\.0\.0\.1:70000"):
            serve(one.engine, 70000)


@pytest.mark.parametrize("module", ["live", "room"])
def test_the_missing_package_is_named(module: str) -> None:
    lines = f"import sys; sys.modules['prometheus_client'] = None; import fairgate.{module}.metrics"
    done = subprocess.run([sys.executable, "-c", lines], capture_output=True, text=True, timeout=SOON, check=False)
    assert done.stderr.splitlines()[-1] == (
        "fairgate.errors.BadInput: metrics need the package prometheus-client: pip install prometheus-client"
    )
