"""The stacks of the generic tests: every protocol of the package, and some of them over a channel."""

from __future__ import annotations

import importlib
import pkgutil

import fairgate.protocols
from fairgate.core.mutex import Mutex
from fairgate.protocols.fair_k import FairK
from fairgate.protocols.leased import Leased
from fairgate.registry import with_layers
from fairgate.sim.config import backup_stack
from fairgate.walks.stacks import Stack, over_channel, plain


def protocols() -> list[type[Mutex]]:
    """Every class of fairgate.protocols that has a name of its own, literal versions included."""
    found = []
    for info in pkgutil.walk_packages(fairgate.protocols.__path__, "fairgate.protocols."):
        for thing in vars(importlib.import_module(info.name)).values():
            if isinstance(thing, type) and issubclass(thing, Mutex) and thing.__module__ == info.name:
                found += [thing] if "about" in vars(thing) and thing.about.name else []
    return found


CARRIED = [over_channel(FairK), over_channel(Leased)]
HOMES = Stack("FairK over Homes", with_layers(FairK, backup_stack("watched")), FairK.about)


def all_stacks() -> list[Stack]:
    return [*map(plain, protocols()), *CARRIED, HOMES]
