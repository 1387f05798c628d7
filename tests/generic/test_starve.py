"""No starvation: one node waits while all others request without a pause."""

import pytest

from fairgate.core.kbr import Routed
from fairgate.mutation.judges import options_of
from fairgate.registry import PROTOCOLS
from fairgate.walks.starvation import PATIENCE, longest_wait

UNTIMED = [name for name, protocol in PROTOCOLS.items() if not protocol.timed and not issubclass(protocol, Routed)]


@pytest.mark.parametrize("name", UNTIMED)
def test_nobody_starves(name: str) -> None:
    for options in options_of(PROTOCOLS[name]):
        assert longest_wait(PROTOCOLS[name], range(30), options) < PATIENCE / 2
