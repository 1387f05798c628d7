"""Stacks for random walks: a protocol and the layers below it."""

from dataclasses import dataclass

from fairgate.core.about import About
from fairgate.core.layers import Layer, MakeNode, over
from fairgate.core.mutex import Mutex
from fairgate.recovery.channel import Channel
from fairgate.registry import with_layers


@dataclass(frozen=True)
class Stack:
    """How to make a node, and the description of the protocol at its top."""

    name: str
    make: MakeNode
    about: About


def plain(protocol: type[Mutex]) -> Stack:
    return Stack(protocol.__name__, with_layers(protocol), protocol.about)


def over_channel(protocol: type[Mutex], channel: type[Layer] = Channel) -> Stack:
    return Stack(f"{protocol.__name__} over {channel.__name__}", over(channel, protocol), protocol.about)
