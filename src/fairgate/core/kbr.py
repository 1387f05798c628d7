"""Key-based routing: what an overlay offers to the protocols above it, and what it asks of them.

A `Keyed` message is on its way to whoever owns the key `target`. `door.route(msg)` starts it here; at every node on
the way that is not the owner, the first one included, the overlay asks the protocol (`forward`), which may let it
pass, rewrite it or keep it; at the owner it is delivered (`deliver`). A Keyed message may also be *sent*, straight
to a node that is believed to be the owner: where that is right it saves the way, where it is wrong the message is
routed on from there. Messages that are not Keyed go from node to node and come by `on_message`.

What a node routes or sends to itself takes no message: it comes after the handler that sent it, within the same step.

A `Routed` protocol is a mutex of one gate. `Gates` (overlay/gates.py) carries one for each gate that a node has to do
with; so all messages of these protocols say the gate that they are about.
"""

from fairgate.core.keyed import Keyed
from fairgate.core.keyspace import key_of
from fairgate.core.layers import Through
from fairgate.core.message import Key
from fairgate.core.mutex import Mutex
from fairgate.core.node import Node
from fairgate.core.outbox import Outbox
from fairgate.core.setup import Setup

REPLICAS = 3  # of a gate with k = 1: the option `replicas`


class Door(Through):
    """The outbox of what an overlay carries."""

    def route(self, msg: Keyed) -> None:
        """On its way to the owner of its target."""
        raise NotImplementedError

    def lookup(self, key: int) -> None:
        """Ask who owns this key: the answer comes by `on_found`, or never."""
        raise NotImplementedError

    def next_hop(self, key: int) -> int:
        """Where a message to this key goes from here; NIL: nowhere, this node is the owner."""
        raise NotImplementedError

    def neighbours(self, count: int) -> tuple[int, ...]:
        """Up to so many nodes that come next: they own this node's keys if it fails."""
        raise NotImplementedError


class Rider(Node):
    """What an overlay can carry."""

    intercepts = True  # does it look at what passes? If not, `forward` is not asked

    def forward(self, src: int, msg: Keyed, next_hop: int) -> Keyed | None:
        """The message came from `src` (from this node itself, if it starts here) and would go on to `next_hop`.

        Answer what goes on in its place: the message, another one, or None for nothing.
        """
        return msg

    def deliver(self, src: int, msg: Keyed) -> None:
        """This node owns the target; `src` was the last hop."""
        raise NotImplementedError

    def on_found(self, key: int, owner: int) -> None:
        """This node owns the key that was looked up, or did when it said so."""

    def on_range(self, start: int, end: int) -> None:
        """From now on this node owns the keys in (start, end], all where they are the same: it gained or lost some."""

    def give_keys(self, first: int, last: int) -> Key:
        """These keys go to another node: what is in mind for them, each as (key, ...), and is here no more."""
        return ()

    def take_keys(self, heirlooms: Key) -> None:
        """What another node had in mind for keys that are this node's now."""


class Routed(Mutex):
    """A mutex on an overlay: one gate, with replicas whose names are hashed onto the circle.

    `passes`, if its class has that: the kind of message that a node with nothing in mind lets pass, and has nothing in
    mind then. So `Gates` makes no node for it.
    """

    overlay = "full"  # the layer it stands on if nobody says another one
    intercepts = True  # see Rider

    def set_up(self, me: int, setup: Setup, out: Outbox) -> None:
        assert isinstance(out, Door), "a protocol on a DHT stands on gates"
        self.door = out
        self.gate: int = setup.options.get("gate", 0)
        self.keys = replica_keys(setup)  # key of replica i
        Mutex.set_up(self, me, setup, out)

    # What the protocol writes besides; see Rider.

    def forward(self, src: int, msg: Keyed, next_hop: int) -> Keyed | None:
        return msg

    def deliver(self, src: int, msg: Keyed) -> None:
        raise NotImplementedError

    def on_found(self, key: int, owner: int) -> None:
        pass

    def on_range(self, start: int, end: int) -> None:
        pass

    def played(self) -> list[tuple[int, int]]:
        """The replicas that it plays, each with its key."""
        raise NotImplementedError

    def give_replica(self, i: int) -> Key:
        """Another node plays this replica now, and goes on from here."""
        raise NotImplementedError

    def take_replica(self, i: int, state: Key) -> None:
        """This node plays it now."""
        raise NotImplementedError


def replica_keys(setup: Setup) -> tuple[int, ...]:
    """SG section II: the replicas of a resource are names, `resource:i`."""
    keys: tuple[int, ...] | None = setup.shared.get("replica_keys")
    if keys is None:
        gate = setup.options.get("gate", 0)
        keys = tuple([key_of(f"gate{gate}:{i}") for i in range(replica_count(setup))])
        setup.shared["replica_keys"] = keys
    return keys


def replica_count(setup: Setup) -> int:
    """Where nothing is said, so many that quorums of two let k in, and no more."""
    count: int = setup.options.get("replicas", 2 * setup.k + 1)
    return count
