"""The registry of protocols and layers by name, and functions that build nodes from them.

The tables say which module each class is in. A class is imported when it is first looked up, so a program that uses one
protocol does not load all of them.
"""

from collections.abc import Iterator, MutableMapping, Sequence
from difflib import get_close_matches
from functools import reduce
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

from fairgate.core.kbr import Routed
from fairgate.core.layers import MakeNode, over
from fairgate.core.mutex import Mutex, check_protocol
from fairgate.core.node import Node
from fairgate.errors import BadInput

if TYPE_CHECKING:
    from fairgate.overlay.overlay import Overlay

C = TypeVar("C", bound=Node)


class ClassTable(MutableMapping[str, type[C]]):
    """A mapping from names to classes. Each entry starts as "module:Class" and is imported on first access."""

    def __init__(self, places: dict[str, str | type[C]]) -> None:
        self.places = places

    def __getitem__(self, name: str) -> type[C]:
        place = self.places[name]
        if isinstance(place, str):
            module, _, class_name = place.partition(":")
            place = self.places[name] = getattr(import_module(module), class_name)
        return place

    def __setitem__(self, name: str, made: type[C]) -> None:
        self.places[name] = made

    def __delitem__(self, name: str) -> None:
        del self.places[name]

    def __contains__(self, name: object) -> bool:
        return name in self.places

    def __iter__(self) -> Iterator[str]:
        return iter(self.places)

    def __len__(self) -> int:
        return len(self.places)


PROTOCOLS: ClassTable[Mutex] = ClassTable(
    {
        "fair_k": "fairgate.protocols.fair_k:FairK",
        "fair_k_bounded": "fairgate.protocols.fair_k_bounded:FairKBounded",
        "one_line": "fairgate.protocols.one_line.protocol:OneLine",
        "naimi_trehel": "fairgate.protocols.naimi_trehel:NaimiTrehel",
        "bv95": "fairgate.protocols.bv95:BV95",
        "raymond": "fairgate.protocols.raymond:Raymond",
        "raymond_fd": "fairgate.protocols.raymond_fd:RaymondFD",
        "raymond_fd_literal": "fairgate.protocols.raymond_fd:RaymondFDLiteral",
        "ricart_agrawala": "fairgate.protocols.ricart_agrawala:RicartAgrawala",
        "suzuki_kasami": "fairgate.protocols.suzuki_kasami:SuzukiKasami",
        "srimani_reddy": "fairgate.protocols.srimani_reddy:SrimaniReddy",
        "raymond_tree": "fairgate.protocols.raymond_tree:RaymondTree",
        "maekawa": "fairgate.protocols.maekawa:Maekawa",
        "centralised": "fairgate.protocols.centralised:Centralised",
        "leased": "fairgate.protocols.leased:Leased",
        "strawman": "fairgate.protocols.sigma.strawman:Strawman",
        "sigma": "fairgate.protocols.sigma.protocol:Sigma",
        "sigma_literal": "fairgate.protocols.sigma.protocol:SigmaLiteral",
        "sigma_zones": "fairgate.protocols.sigma.zones:SigmaZones",
        "sigma_zones_literal": "fairgate.protocols.sigma.zones:SigmaZonesLiteral",
        "e2e": "fairgate.protocols.e2e.protocol:E2E",
        "e2e_literal": "fairgate.protocols.e2e.literal:E2ELiteral",
        "non_e2e": "fairgate.protocols.non_e2e.protocol:NonE2E",
        "non_e2e_faults": "fairgate.protocols.non_e2e.fault_tolerant:NonE2EFaults",
        "non_e2e_literal": "fairgate.protocols.non_e2e.literal:NonE2ELiteral",
        "e2e_ft": "fairgate.protocols.e2e.fault_tolerant:E2EFT",
    }
)
OVERLAYS: ClassTable["Overlay"] = ClassTable(
    {
        "full": "fairgate.overlay.full:Full",
        "watched": "fairgate.overlay.full:Watched",
        "chord": "fairgate.overlay.chord:Chord",
        "pastry": "fairgate.overlay.pastry:Pastry",
        "outside": "fairgate.overlay.outside:Outside",
        "settled_chord": "fairgate.overlay.settled:SettledChord",
        "settled_pastry": "fairgate.overlay.settled:SettledPastry",
    }
)
LAYERS: ClassTable[Node] = ClassTable(
    {
        "channel": "fairgate.recovery.channel:Channel",
        "regenerate": "fairgate.recovery.regenerate:Regenerate",
        "homes": "fairgate.recovery.homes:Homes",
        "gates": "fairgate.overlay.gates:Gates",
        **OVERLAYS.places,
    }
)


def find_protocol(name: str) -> type[Mutex]:
    """The protocol with this name; case does not matter, and dashes count as underscores.

    Raises BadInput, with the closest known name as a hint, if there is no such protocol.
    """
    wanted = name.lower().replace("-", "_")
    if wanted in PROTOCOLS:
        check_protocol(PROTOCOLS[wanted], wanted)
        return PROTOCOLS[wanted]
    near = get_close_matches(wanted, PROTOCOLS, n=1)
    hint = f"did you mean {near[0]}?" if near else "`fairgate protocols` lists them"
    raise BadInput(f"there is no protocol {name!r}: {hint}")


def check_size(protocol: type[Mutex], nodes: int, k: int) -> None:
    """Raise BadInput, with a one-line explanation, if the protocol cannot run with this many nodes and this k."""
    if nodes < 1:
        raise BadInput(f"nodes must be at least 1, not {nodes}")
    if not 1 <= k <= nodes:
        raise BadInput(f"k must be 1..{nodes} (the number of nodes), not {k}")
    if k > 1 and not protocol.about.many:
        name = protocol.about.name
        raise BadInput(f"{name} lets one in at a time: use k=1, or a protocol for k > 1 such as fair_k")


def check_votes(protocol: type[Mutex], nodes: int, k: int, options: dict[str, Any]) -> None:
    """Raise BadInput, with a one-line explanation, if the options `replicas` and `quorum` do not fit k.

    They fit if there are enough replicas for exactly k disjoint quorums. Only DHT protocols have these options.
    """
    if not issubclass(protocol, Routed):
        return
    given: int | None = options.get("replicas")
    if given is not None and not 1 <= given <= nodes:
        raise BadInput(f"replicas must be 1..{nodes} (the number of nodes), not {given}")
    replicas = given if given is not None else 2 * k + 1
    quorum = options.get("quorum") or replicas // (k + 1) + 1
    if not 1 <= quorum <= replicas:
        raise BadInput(f"quorum must be 1..{replicas} (the number of replicas), not {quorum}")
    if replicas // quorum != k:
        good = [m for m in range(1, replicas + 1) if replicas // m == k]
        hint = (
            f"use {' to '.join(map(str, sorted({good[0], good[-1]})))}"
            if good
            else f"use other replicas, such as {2 * k + 1}"
        )
        raise BadInput(
            f"quorum {quorum} of {replicas} replicas would let {replicas // quorum} in, but k is {k}: {hint}"
        )


def whole_stack(protocol: type[Mutex], stack: Sequence[str]) -> tuple[str, ...]:
    """The layers below a protocol, uppermost first. For a DHT protocol, `gates` and an overlay are added if missing."""
    if not issubclass(protocol, Routed):
        return tuple(stack)
    if any(layer in OVERLAYS for layer in stack):
        return ("gates", *[layer for layer in stack if layer != "gates"])
    return ("gates", protocol.overlay, *stack)


def make_node(name: str, stack: Sequence[str] = ()) -> MakeNode:
    """A function that creates nodes: the protocol `name` above the layers of `stack`, uppermost first.

    Raises BadInput for an unknown protocol or layer.
    """
    return with_layers(find_protocol(name), stack)


def with_layers(protocol: type[Mutex], stack: Sequence[str] = ()) -> MakeNode:
    """Like `make_node`, for a protocol class."""
    make: MakeNode = protocol
    for layer in stack:
        if layer not in LAYERS:
            raise BadInput(f"there is no layer {layer!r}: choose from {', '.join(LAYERS)}")
    return reduce(lambda upper, layer: over(LAYERS[layer], upper), whole_stack(protocol, stack), make)
