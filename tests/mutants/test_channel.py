"""Mutants of the channel: each has one line wrong, and must break one of the named properties.

They carry Fair-k, whose tokens and coordinator are counted across the channel, below a witness that checks the order of
delivery.
"""

import pytest

from fairgate.protocols.fair_k import FairK
from fairgate.walks.stacks import plain
from tests.mutants.lossy import caught_lossy
from tests.mutants.mutate import mutant
from tests.support.witness import witnessed

MUTANTS = {
    "keeps messages that it has delivered": ("if m.number <= link.taken:", "if False:", {"memory"}),
    "delivers duplicates again": (
        '            self.out.note("a message came again")\n',
        "            self.lift().on_message(src, m.inner)\n",
        {"order"},
    ),
    "delivers in order of arrival": (
        "            link.taken += 1\n            self.lift().on_message(src, link.early.pop(link.taken))",
        "            link.taken += 1\n            self.lift().on_message(src, link.early.popitem()[1])",
        {"order"},
    ),
    "acknowledges messages that it has not delivered": (
        "Ack(link.taken)",
        "Ack(m.number)",
        {"tokens", "coordinators", "liveness"},
    ),
    "does not acknowledge duplicates": (
        '            self.out.note("a message came again")\n',
        "            return\n",
        {"silence"},
    ),
    "never resends": (
        "in range(first, min(first + WINDOW, link.sent + 1)):",
        "in range(0):",
        {"liveness", "silence"},
    ),
    "resends only once": ("        self.set_timer(name, link.delay)\n", "", {"liveness", "memory"}),
    "keeps no message for resending": (
        "        link.unacknowledged[link.sent] = msg\n",
        "",
        {"tokens", "coordinators"},
    ),
    "gives all messages the same number": (
        "        link.sent += 1\n",
        "        link.sent = 1\n",
        {"tokens", "coordinators"},
    ),
    "never stops its timer": ('            self.cancel_timer(f"{TIMER}{src}")\n', "            pass\n", {"silence"}),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_caught(name: str) -> None:
    old, new, expected = MUTANTS[name]
    module = mutant("recovery.channel", old, new)
    assert caught_lossy(witnessed(plain(FairK), module.Channel)) in expected
