"""What the generic tests run over: every protocol of the package, and some of them over a channel."""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import dataclass

import fairgate.protocols
from fairgate.core.about import About
from fairgate.core.layers import Layer, MakeNode, over
from fairgate.core.mutex import Mutex
from fairgate.protocols.fair_k import FairK
from fairgate.protocols.leased import Leased
from fairgate.recovery.channel import Channel
from fairgate.registry import stand


@dataclass(frozen=True)
class Stack:
    """How to make a node, and what the protocol at its top says of itself."""

    name: str
    make: MakeNode
    about: About


def protocols() -> list[type[Mutex]]:
    """Every class of fairgate.protocols that has a name, literal versions included."""
    found = []
    for info in pkgutil.iter_modules(fairgate.protocols.__path__, "fairgate.protocols."):
        for thing in vars(importlib.import_module(info.name)).values():
            if isinstance(thing, type) and issubclass(thing, Mutex) and thing.__module__ == info.name:
                found += [thing] if thing.about.name else []
    return found


def plain(protocol: type[Mutex]) -> Stack:
    return Stack(protocol.__name__, stand(protocol), protocol.about)


def over_channel(protocol: type[Mutex], channel: type[Layer] = Channel) -> Stack:
    return Stack(f"{protocol.__name__} over {channel.__name__}", over(channel, protocol), protocol.about)


CARRIED = [over_channel(FairK), over_channel(Leased)]


def all_stacks() -> list[Stack]:
    return [*map(plain, protocols()), *CARRIED]
