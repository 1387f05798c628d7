"""Over a channel, a lossy network only makes a protocol slower."""

import pytest

from fairgate.protocols.fair_k import FairK
from fairgate.protocols.leased import Leased
from fairgate.walks.lossy import lossy_walks
from fairgate.walks.stacks import over_channel, plain
from tests.support.witness import witnessed


def test_fair_k_over_a_channel() -> None:
    marks = lossy_walks(over_channel(FairK), range(300))
    assert "a message came again" in marks


def test_leased_over_a_channel() -> None:
    marks = lossy_walks(over_channel(Leased), range(300))
    assert {"lease over", "the root took a slot back", "an offer ran out on its way"} <= marks
    assert {"the answer took longer than the lease", "an offer came for a cancelled request"} <= marks
    assert "the slot was given away" not in marks  # only possible if clocks drift by more than `drift`


def test_leased_survives_the_crash_of_a_client() -> None:
    lossy_walks(over_channel(Leased), range(150), crash=True)


def test_leased_is_safe_even_without_a_channel() -> None:
    marks = lossy_walks(plain(Leased), range(300), live=False)
    assert {"lease over", "an offer nobody asked for"} <= marks


@pytest.mark.parametrize("protocol", [FairK, Leased])
def test_each_message_is_delivered_once_and_in_order(protocol: type) -> None:
    lossy_walks(witnessed(plain(protocol)), range(100))
