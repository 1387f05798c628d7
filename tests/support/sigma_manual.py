"""Sigma and the strawman on a ManualNetwork: replica i is at node i, and the clients are the nodes after those."""

from __future__ import annotations

from itertools import count
from typing import Any

from fairgate.core.message import Message
from fairgate.core.setup import Setup
from fairgate.protocols.sigma.protocol import Sigma
from fairgate.protocols.sigma.strawman import Strawman
from fairgate.protocols.sigma.votes import Response
from fairgate.registry import with_layers
from fairgate.scenario.manual import ManualNetwork
from tests.support.dht_check import placed

UNTIMED = {"lease": 0, "retry": 0, "resend": 0, "prime": False}


def network_of(
    replicas: int = 3, clients: int = 3, k: int = 1, protocol: type[Strawman] = Sigma, **options: Any
) -> ManualNetwork:
    lives = count(1)
    setup = Setup(
        tuple(range(replicas + clients)), k, options={**UNTIMED, "replicas": replicas, "backoff": 1000, **options}
    )
    return ManualNetwork(with_layers(placed(protocol)), setup, False, lambda n: next(lives) % n)


def node(network: ManualNetwork, me: int) -> Any:
    """The protocol's node within the stack."""
    stack: Any = network.nodes[me]
    return stack.upper.at(0)


def move(network: ManualNetwork, src: int, dst: int, kind: type[Message] = Message) -> None:
    """Deliver the oldest message of that kind from `src` to `dst`."""
    network.deliver(
        next(at for at, f in enumerate(network.flight) if (f.src, f.dst) == (src, dst) and isinstance(f.msg, kind))
    )


def ask(network: ManualNetwork, client: int, *replicas: int) -> None:
    """The client makes a request. Its REQUESTs reach these replicas, and it receives their answers."""
    network.acquire(client)
    reach(network, client, *replicas)


def reach(network: ManualNetwork, client: int, *replicas: int) -> None:
    for i in replicas:
        move(network, client, i)
        move(network, i, client, Response)


def sent(network: ManualNetwork) -> list[str]:
    return [f"{f.src}>{f.dst} {f.msg.tag.removeprefix('sg.')}" for f in network.flight]


def replica(network: ManualNetwork, i: int) -> tuple[int, list[int]]:
    """The owner of replica `i`, and the clients in its queue."""
    rep = node(network, i).replicas[i]
    return rep.Cowner, [w.client for w in rep.Queue]


def forget(network: ManualNetwork, i: int) -> None:
    """The node that serves replica i loses its memory."""
    server = node(network, i)
    server.replicas.clear()
    server.life += 1000
