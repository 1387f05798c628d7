"""Each mutant of the channel is one line gone wrong, and breaks a property that is named.

They carry Fair-k, whose tokens and coordinator are counted through the channel, under a witness that
swears to the order.
"""

import pytest

from fairgate.protocols.fair_k import FairK
from fairgate.walks.stacks import plain
from tests.mutants.lossy import caught_lossy
from tests.mutants.mutate import mutant
from tests.support.witness import witnessed

MUTANTS = {
    "keeps what it has taken": ("if m.number > link.taken:", "if True:", {"memory"}),
    "takes the last one again": (
        "            link.early[m.number] = m.inner\n        else:\n",
        "            link.early[m.number] = m.inner\n        else:\n            self.lift().on_message(src, m.inner)\n",
        {"order"},
    ),
    "takes as it comes": (
        "            link.taken += 1\n            self.lift().on_message(src, link.early.pop(link.taken))",
        "            link.taken += 1\n            self.lift().on_message(src, link.early.popitem()[1])",
        {"order"},
    ),
    "acknowledges what it has not taken": ("Ack(link.taken)", "Ack(m.number)", {"tokens", "coordinators", "liveness"}),
    "acknowledges only news": (
        '            self.out.note("a message came again")\n',
        "            return\n",
        {"silence"},
    ),
    "sends nothing again": (
        "            self.out.send(peer, Data(number, msg))\n",
        "            pass\n",
        {"liveness", "silence"},
    ),
    "sends again only once": ("        self.set_timer(name, link.delay)\n", "", {"liveness", "memory"}),
    "keeps no message": ("        link.unacknowledged[link.sent] = msg\n", "", {"tokens", "coordinators"}),
    "numbers all messages alike": ("        link.sent += 1\n", "        link.sent = 1\n", {"tokens", "coordinators"}),
    "never rests": ('            self.cancel_timer(f"{TIMER}{src}")\n', "            pass\n", {"silence"}),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_caught(name: str) -> None:
    old, new, expected = MUTANTS[name]
    module = mutant("recovery.channel", old, new)
    assert caught_lossy(witnessed(plain(FairK), module.Channel)) in expected
