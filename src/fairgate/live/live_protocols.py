"""Which protocols can run live, and how to make their nodes."""

from functools import partial

from fairgate.core.kbr import Routed
from fairgate.core.layers import MakeNode
from fairgate.core.mutex import Mutex
from fairgate.core.setup import Options
from fairgate.errors import BadInput
from fairgate.registry import PROTOCOLS, find_protocol

ONE, MANY = "bv95", "centralised"
OPTIONS: dict[str, Options] = {"bv95": {"cache": "sorted"}}  # where the protocol's own default is not for users


def default_protocol(k: int) -> str:
    """For one at a time path reversal with the queue in the token, which is what BV95 is with one token: two messages
    an entry under load, where the mutex that Fair-k is built on takes more than three, and nearly the same order.

    For more, one seat keeps the queue, whichever is first in the view. Fair-k gives each request its place in one of k
    queues, in turn, and there it stays: behind a permit that is held for hours, while other slots are free.
    """
    return ONE if k == 1 else MANY


def why_not(protocol: type[Mutex]) -> str:
    """Why it cannot run live; nothing if it can."""
    if issubclass(protocol, Routed):
        return "it needs an overlay, which live peers do not build yet"
    if protocol.about.detectors:
        return "it needs failure detectors; live gates survive the dead by a census instead"
    if protocol.timed:
        return "it goes by the clock, so that a census cannot make it anew"
    return ""


def live_protocols() -> list[str]:
    return [name for name, protocol in PROTOCOLS.items() if not why_not(protocol)]


def find_live(name: str) -> type[Mutex]:
    """By name. BadInput if there is none, or if it cannot run live."""
    protocol = find_protocol(name)
    why = why_not(protocol)
    if why:
        raise BadInput(f"{protocol.about.name} cannot run live: {why}; these can: {', '.join(live_protocols())}")
    return protocol


def make_of(name: str, k: int) -> MakeNode:
    protocol = find_live(name)
    if k < 1:
        raise BadInput(f"a gate that lets {k} in would let nobody in: k must be at least 1")
    if k > 1 and not protocol.about.many:
        raise BadInput(f"{protocol.about.name} lets one in at a time: k must be 1, not {k}")
    return partial(protocol)


def options_of(name: str) -> Options:
    return OPTIONS.get(name, {})
