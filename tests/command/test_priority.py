"""A peer's real-time priority."""

from __future__ import annotations

import subprocess
import sys

import pytest

# It comes first, as do threads that it starts, until it has computed for too long.
SPIN = """
import os, threading, time
from fairgate.command import priority

priority.LONGEST = 100_000
priority.come_first()
policies = {os.sched_getscheduler(0)}
other = threading.Thread(target=lambda: policies.add(os.sched_getscheduler(0)))
other.start()
other.join()
end = time.monotonic() + 20
while os.sched_getscheduler(0) == os.SCHED_RR and time.monotonic() < end:
    pass
print(policies == {os.SCHED_RR}, os.sched_getscheduler(0) == os.SCHED_OTHER)
"""


def may_come_first() -> bool:
    script = "import os; os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))"
    return subprocess.run([sys.executable, "-c", script], capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(not may_come_first(), reason="needs CAP_SYS_NICE")
def test_a_process_that_computes_without_a_pause_steps_back() -> None:
    done = subprocess.run([sys.executable, "-c", SPIN], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "True True\n"
    assert "gives up its real-time priority" in done.stderr


@pytest.mark.skipif(not may_come_first(), reason="needs a right that can be given up")
def test_a_process_that_may_not_come_first_goes_on() -> None:
    script = (
        "import os, resource; from fairgate.command.priority import come_first;"
        "resource.setrlimit(resource.RLIMIT_RTPRIO, (0, 0)); os.setuid(65534); come_first();"
        "print(os.sched_getscheduler(0) == os.SCHED_OTHER)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "True\n"
