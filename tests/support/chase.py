"""An adversary for one_line: it delivers one node's request only to nodes that the Line has just left."""

import random
from collections.abc import Callable
from functools import partial
from typing import Any

from fairgate.core.mutex import Mutex
from fairgate.core.setup import Setup
from fairgate.registry import with_layers
from fairgate.scenario.manual import Flight, ManualNetwork

Move = Callable[[], object]


def is_ask_of(flight: Flight, victim: int) -> bool:
    return flight.msg.tag == "ol.ask" and flight.msg.key()[3] == victim


def comes_too_late(network: ManualNetwork, flight: Flight) -> bool:
    """Has the Line been at the receiver, and gone on?"""
    node: Any = network.nodes[flight.dst]
    return node.line is None and node.latest > flight.msg.key()[1] and node.door != flight.dst


def entries_while_chasing(
    protocol: type[Mutex], seed: int, n: int = 4, k: int = 2, chase: int = 8, most: int = 1000
) -> int:
    """One node asks once; the others never pause. Returns how often they enter until it does, at most `most`."""
    rng = random.Random(seed)
    setup = Setup(tuple(range(n)), k, options={"reign": 1, "chase": chase})
    network = ManualNetwork(with_layers(protocol), setup, slots=True)
    victim = n - 1
    network.acquire(victim)
    while victim in network.waiting and len(network.grants) < most:
        for me in range(n):
            if me not in network.waiting and me not in network.inside:
                network.acquire(me)
        chasing = [at for at, flight in enumerate(network.flight) if is_ask_of(flight, victim)]
        late = [at for at in chasing if comes_too_late(network, network.flight[at])]
        if late:
            network.deliver(late[0])
            continue
        moves: list[Move] = [partial(network.release, me) for me in network.inside]
        moves += [partial(network.deliver, at) for at in range(len(network.flight)) if at not in chasing]
        moves = moves or [partial(network.deliver, chasing[0])]
        rng.choice(moves)()
    return len(network.grants)
