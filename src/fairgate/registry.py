"""All protocols and layers by name, and how to make a node of them."""

from collections.abc import Sequence
from difflib import get_close_matches
from functools import reduce
from typing import Any

from fairgate.core.kbr import Routed
from fairgate.core.layers import MakeNode, over
from fairgate.core.mutex import Mutex
from fairgate.core.node import Node
from fairgate.errors import BadInput
from fairgate.overlay.chord import Chord
from fairgate.overlay.full import Full
from fairgate.overlay.gates import Gates
from fairgate.overlay.overlay import Overlay
from fairgate.overlay.pastry import Pastry
from fairgate.overlay.settled import SettledChord, SettledPastry
from fairgate.protocols.bv95 import BV95
from fairgate.protocols.centralised import Centralised
from fairgate.protocols.e2e.fault_tolerant import E2EFT
from fairgate.protocols.e2e.literal import E2ELiteral
from fairgate.protocols.e2e.protocol import E2E
from fairgate.protocols.fair_k import FairK
from fairgate.protocols.fair_k_bounded import FairKBounded
from fairgate.protocols.leased import Leased
from fairgate.protocols.maekawa import Maekawa
from fairgate.protocols.naimi_trehel import NaimiTrehel
from fairgate.protocols.non_e2e.fault_tolerant import NonE2EFaults
from fairgate.protocols.non_e2e.literal import NonE2ELiteral
from fairgate.protocols.non_e2e.protocol import NonE2E
from fairgate.protocols.raymond import Raymond
from fairgate.protocols.raymond_fd import RaymondFD, RaymondFDLiteral
from fairgate.protocols.ricart_agrawala import RicartAgrawala
from fairgate.protocols.sigma.protocol import Sigma, SigmaLiteral
from fairgate.protocols.sigma.strawman import Strawman
from fairgate.protocols.suzuki_kasami import SuzukiKasami
from fairgate.recovery.channel import Channel
from fairgate.recovery.regenerate import Regenerate

PROTOCOLS: dict[str, type[Mutex]] = {
    protocol.about.name: protocol
    for protocol in (
        FairK,
        FairKBounded,
        NaimiTrehel,
        BV95,
        Raymond,
        RaymondFD,
        RaymondFDLiteral,
        RicartAgrawala,
        SuzukiKasami,
        Maekawa,
        Centralised,
        Leased,
        Strawman,
        Sigma,
        SigmaLiteral,
        E2E,
        E2ELiteral,
        NonE2E,
        NonE2EFaults,
        NonE2ELiteral,
        E2EFT,
    )
}
OVERLAYS: dict[str, type[Overlay]] = {
    "full": Full,
    "chord": Chord,
    "pastry": Pastry,
    "settled_chord": SettledChord,
    "settled_pastry": SettledPastry,
}
LAYERS: dict[str, type[Node]] = {"channel": Channel, "regenerate": Regenerate, "gates": Gates, **OVERLAYS}


def find_protocol(name: str) -> type[Mutex]:
    """By name, forgiving about dashes and case; the nearest name is offered where there is none."""
    wanted = name.lower().replace("-", "_")
    if wanted in PROTOCOLS:
        return PROTOCOLS[wanted]
    near = get_close_matches(wanted, PROTOCOLS, n=1, cutoff=0.4)
    hint = f"did you mean {near[0]}?" if near else "`fairgate protocols` lists them"
    raise BadInput(f"there is no protocol {name!r}: {hint}")


def check_size(protocol: type[Mutex], nodes: int, k: int) -> None:
    """One clear line where a gate of this size makes no sense for the protocol."""
    if nodes < 1:
        raise BadInput(f"--nodes must be at least 1, not {nodes}")
    if not 1 <= k <= nodes:
        raise BadInput(f"--k must be 1..{nodes} (the number of nodes), not {k}")
    if k > 1 and not protocol.about.many:
        name = protocol.about.name
        raise BadInput(f"{name} lets one in at a time: use --k 1, or a protocol for k > 1 such as fair_k")


def check_votes(protocol: type[Mutex], nodes: int, k: int, options: dict[str, Any]) -> None:
    """One clear line where replicas and quorum, if somebody sets them, make no gate of k."""
    if not issubclass(protocol, Routed):
        return
    given: int | None = options.get("replicas")
    if given is not None and not 1 <= given <= nodes:
        raise BadInput(f"--replicas must be 1..{nodes} (the number of nodes), not {given}")
    replicas = given if given is not None else 2 * k + 1
    quorum = options.get("quorum") or replicas // (k + 1) + 1
    if not 1 <= quorum <= replicas:
        raise BadInput(f"--quorum must be 1..{replicas} (the number of replicas), not {quorum}")
    if replicas // quorum != k:
        good = [m for m in range(1, replicas + 1) if replicas // m == k]
        hint = (
            f"use {' to '.join(map(str, sorted({good[0], good[-1]})))}"
            if good
            else f"use other --replicas, such as {2 * k + 1}"
        )
        raise BadInput(
            f"--quorum {quorum} of {replicas} replicas would let {replicas // quorum} in, and k is {k}: {hint}"
        )


def whole_stack(protocol: type[Mutex], stack: Sequence[str]) -> tuple[str, ...]:
    """The layers below a protocol, the uppermost first: one on a DHT stands on gates and an overlay, also unsaid."""
    if not issubclass(protocol, Routed):
        return tuple(stack)
    if any(layer in OVERLAYS for layer in stack):
        return ("gates", *[layer for layer in stack if layer != "gates"])
    return ("gates", protocol.overlay, *stack)


def make_node(name: str, stack: Sequence[str] = ()) -> MakeNode:
    """A protocol above the layers of `stack`, the uppermost first."""
    return stand(find_protocol(name), stack)


def stand(protocol: type[Mutex], stack: Sequence[str] = ()) -> MakeNode:
    make: MakeNode = protocol
    for layer in stack:
        if layer not in LAYERS:
            raise BadInput(f"there is no layer {layer!r}: known are {', '.join(LAYERS)}")
    return reduce(lambda upper, layer: over(LAYERS[layer], upper), whole_stack(protocol, stack), make)
