"""Random walks of every protocol: the originals pass on the same seeds on which mutants fail."""

import pytest

from fairgate.core.mutex import Mutex
from fairgate.protocols.fair_k_bounded import FairKBounded
from fairgate.registry import PROTOCOLS
from fairgate.walks.walk import walks

SEEDS = range(300)


SOUND = [  # without the literal versions of the papers, which may break; their own tests say how
    p for p in PROTOCOLS.values() if not p.about.detectors and not p.timed and not p.about.name.endswith("_literal")
]


@pytest.mark.parametrize("protocol", SOUND, ids=lambda p: p.about.name)
def test_no_walk_breaks_a_property(protocol: type[Mutex]) -> None:
    walks(protocol, SEEDS)


@pytest.mark.parametrize("reentry", [0, 1])
def test_no_walk_breaks_a_property_if_idle_holders_must_request(reentry: int) -> None:
    walks(FairKBounded, range(1_000), {"reentry": reentry})
    walks(FairKBounded, SEEDS, {"reentry": reentry, "parent_on_child": False})
