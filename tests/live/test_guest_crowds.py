"""A crowd of commands that all start at once, on a host whose peer has a short lease in its cluster."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live.guests import ended
from tests.live.test_guest_hosts import TcpHost

COMMANDS = 300
K = ("-k", "3")
MOST_SECONDS = 280.0

Processes = list[subprocess.Popen[bytes]]


@pytest.fixture
def processes() -> Iterator[Processes]:
    started: Processes = []
    with ended(started):
        yield started


@pytest.mark.stress
def test_no_command_of_a_crowd_is_ended(tmp_path: Path, processes: Processes) -> None:
    """Most of the processors' time goes to Python that starts. Meanwhile the peers must renew their leases."""
    host = TcpHost(tmp_path / "0", processes, "--create", "--lease", "3")
    for number in (1, 2):
        TcpHost(tmp_path / str(number), processes, "--join", host.seed)
    crowd = [host.run("gpu", *K, "--", "sleep", "0.02") for _ in range(COMMANDS)]
    processes += crowd
    codes = Counter([command.wait(MOST_SECONDS) for command in crowd])
    assert codes == {0: COMMANDS}
