"""Which protocols can run live, and how to create their nodes."""

from functools import partial

from fairgate.arguments import MANY, ONE
from fairgate.core.kbr import Routed
from fairgate.core.layers import MakeNode
from fairgate.core.mutex import Mutex
from fairgate.core.setup import Options
from fairgate.errors import BadInput
from fairgate.recovery.roster import Members
from fairgate.registry import PROTOCOLS, find_protocol

DEFAULTS = [PROTOCOLS[name] for name in (ONE, MANY)]  # imported now, before any user has to wait
OPTIONS: dict[str, Options] = {  # where a protocol's own default does not suit live gates
    "bv95": {"cache": "sorted"},
    "one_line": {"ahead": 0},
}


def default_protocol(k: int) -> str:
    """The protocol for gates whose users do not choose one.

    For k=1 it is BV95, which with one token is path reversal with the queue in the token: two messages per entry under
    load, where the mutex that Fair-k is built on takes more than three, and nearly the same order. A hand-over is one
    message (measured beside others in docs/results.md, "Between hosts").

    For more, it is one line for all slots, kept by a seat that the line leaves for another now and then. So a process
    that has the gate for itself soon has the line too, and enters without a message. Nobody in the line is promised the
    slot of a certain holder (`ahead`): that would save a message, but whoever is promised the slot of a long stay is
    overtaken. Fair-k assigns requests to k queues in turn, where they stay: a request may wait behind a permit that is
    held for hours while other slots are free. (Measured in docs/results.md, "More than one slot".)
    """
    return ONE if k == 1 else MANY


def usual_protocol(members: Members, name: str, k: int) -> str:
    """What the gate runs at other peers, which may be of a version with another default; else the default."""
    record = members.gate(name)
    return default_protocol(k) if record is None or record.k != k else record.protocol


def why_not(protocol: type[Mutex]) -> str:
    """Why the protocol cannot run live; empty if it can."""
    if issubclass(protocol, Routed):
        return "it needs an overlay, which live peers do not build yet"
    if protocol.about.detectors:
        return "it needs failure detectors, which live gates do not have: they recover from crashes by a census"
    if protocol.timed:
        return "it depends on the clock, so a census cannot rebuild its state"
    return ""


def live_protocols() -> list[str]:
    return [name for name, protocol in PROTOCOLS.items() if not why_not(protocol)]


def find_live(name: str) -> type[Mutex]:
    """The protocol with this name. BadInput if it does not exist or cannot run live."""
    protocol = find_protocol(name)
    why = why_not(protocol)
    if why:
        raise BadInput(f"{protocol.about.name} cannot run live: {why}; these can: {', '.join(live_protocols())}")
    return protocol


def make_of(name: str, k: int) -> MakeNode:
    protocol = find_live(name)
    if k > 1 and not protocol.about.many:
        raise BadInput(f"{protocol.about.name} is a mutex: k must be 1, not {k}")
    return partial(protocol)


def options_of(name: str) -> Options:
    return OPTIONS.get(name, {})
