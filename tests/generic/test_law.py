"""After `load(key())` a node behaves exactly like the original: checked after every step of every protocol.

The checker, the journal, backups, pickling and upgrades rely on this law; tests/support/law.py defines it.
"""

import pytest

from fairgate.walks.stacks import Stack
from tests.support.law import law_walks
from tests.support.stacks import CARRIED, all_stacks


@pytest.mark.parametrize("stack", all_stacks(), ids=lambda stack: stack.name)
def test_a_node_loaded_from_its_key_goes_on_as_the_original(stack: Stack) -> None:
    law_walks(stack, range(20))


@pytest.mark.parametrize("stack", CARRIED, ids=lambda stack: stack.name)
def test_the_same_over_a_lossy_network(stack: Stack) -> None:
    law_walks(stack, range(20), lossy=True)
